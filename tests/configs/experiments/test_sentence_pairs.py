from experiments.sentence_pairs import split

SHORT = [(f"Tom likes number {i}.", f"Tom mag Nummer {i}.") for i in range(300)]
LONG = [
    (
        f"Tom and Mary and John like the number {i}.",
        f"Tom und Maria und Johann mögen {i}.",
    )
    for i in range(60)
]
PARAPHRASES = [(f"Tom likes number {i}.", f"Nummer {i} mag Tom.") for i in range(300)]
CORPUS = SHORT + LONG + PARAPHRASES
SIZES = {"valid": 20, "test": 40}


def test_held_out_sentences_are_not_trained_on() -> None:
    parts = split(CORPUS, SIZES, long_words=8, long_share=0.5)
    held_out = parts["valid"] + parts["test"]
    assert {name: len(parts[name]) for name in SIZES} == SIZES
    assert [
        sum(len(source.split()) >= 8 for source, _ in parts[name]) for name in SIZES
    ] == [10, 20]
    assert len({source for source, _ in held_out}) == 60  # each once
    assert not {source for source, _ in parts["train"]} & {
        source for source, _ in held_out
    }
    assert not {target for _, target in parts["train"]} & {
        target for _, target in held_out
    }
    assert set(parts["train"]) | {
        pair for pair in CORPUS if pair[0] in dict(held_out)
    } == set(CORPUS)
