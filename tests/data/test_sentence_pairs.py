from configs.shared.data.tatoeba import join_pairs
from fairseq_aggdec.data.sentence_pairs import clean_pairs, split, without

SHORT = [(f"Tom likes number {i}.", f"Tom mag Nummer {i}.") for i in range(300)]
LONG = [(f"Tom and Mary and John like the number {i}.", f"Tom und Maria und Johann mögen {i}.") for i in range(60)]
PARAPHRASES = [(f"Tom likes number {i}.", f"Nummer {i} mag Tom.") for i in range(300)]
CORPUS = SHORT + LONG + PARAPHRASES
SIZES = {"valid": 20, "test": 40}


def test_pairs_are_normalised_and_distinct() -> None:
    pairs = [("“Hi.”", "„Hallo.“"), ('"Hi."', '"Hallo."'), ("  ", "leer"), ("a  b", "c")]
    assert list(clean_pairs(pairs)) == [('"Hi."', '"Hallo."'), ("a b", "c")]


def test_held_out_sentences_are_not_trained_on() -> None:
    parts = split(CORPUS, SIZES, long_words=8, long_share=0.5)
    held_out = parts["valid"] + parts["test"]
    assert {name: len(parts[name]) for name in SIZES} == SIZES
    assert [sum(len(source.split()) >= 8 for source, _ in parts[name]) for name in SIZES] == [10, 20]
    assert len({source for source, _ in held_out}) == 60  # each once
    assert not {source for source, _ in parts["train"]} & {source for source, _ in held_out}
    assert not {target for _, target in parts["train"]} & {target for _, target in held_out}
    assert set(parts["train"]) | {pair for pair in CORPUS if pair[0] in dict(held_out)} == set(CORPUS)


def test_more_text_does_not_reshuffle_the_sets() -> None:
    before = split(CORPUS, SIZES)["test"]
    after = split([*CORPUS, ("A new sentence.", "Ein neuer Satz.")], SIZES)["test"]
    assert len(set(before) & set(after)) >= 39


def test_joined_pairs_stay_parallel_and_short_enough() -> None:
    joined = list(join_pairs(SHORT, lines=40, max_words=16))
    assert len(joined) == 40
    for source, target in joined:
        assert [word for word in source.split() if word[0].isdigit()] == [w for w in target.split() if w[0].isdigit()]
        assert len(source.split()) <= 16
    assert {source.count("Tom") for source, _ in joined} == {2, 3, 4}


def test_pairs_that_others_share_a_sentence_with_are_left_out() -> None:
    pairs = [("a b", "1"), ("c", "2 3"), ("d", "4"), ("d", "4")]
    assert without(pairs, [("ab", "x"), ("y", "23")]) == [("d", "4")] * 2
    assert without(pairs, iter([("4", "d")])) == pairs  # a source is no target
