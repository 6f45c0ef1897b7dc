from experiments.sentence_pairs import split

SHORT = [(f"Tom likes number {i}.", f"Tom mag Nummer {i}.") for i in range(300)]
LONG = [
    (f"Tom and Mary and John like the number {i}.", f"Tom und Maria mögen {i}.")
    for i in range(60)
]
SAME_SOURCE = [(source, f"Es gilt: {target}") for source, target in SHORT]
SAME_TARGET = [(f"So {source}", target) for source, target in SHORT]
CORPUS = SHORT + LONG + SAME_SOURCE + SAME_TARGET
SIZES = {"valid": 20, "test": 40}


def test_held_out_sentences_are_not_trained_on() -> None:
    parts = split(CORPUS, SIZES, long_words=8, long_share=0.5)
    for name, size in SIZES.items():
        assert len(parts[name]) == size
        assert sum(len(source.split()) >= 8 for source, _ in parts[name]) == size / 2
    held_out = parts["valid"] + parts["test"]
    sources = {source for source, _ in held_out}
    targets = {target for _, target in held_out}
    assert len(sources) == 60  # each once
    assert parts["train"] == [
        (source, target)
        for source, target in CORPUS
        if source not in sources and target not in targets
    ]
