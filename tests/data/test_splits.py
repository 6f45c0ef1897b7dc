from fairseq_aggdec.data.splits import hold_out, join_neighbours

SENTENCES = [f"Sentence number {number}." for number in range(200)]


def test_sets_are_disjoint_and_have_their_sizes() -> None:
    sets = hold_out(SENTENCES, {"valid": 10, "test": 20})
    assert {name: len(part) for name, part in sets.items()} == {"valid": 10, "test": 20}
    assert not set(sets["valid"]) & set(sets["test"])
    assert set(sets["valid"]) | set(sets["test"]) <= set(SENTENCES)


def test_more_text_moves_few_sentences() -> None:
    before = set(hold_out(SENTENCES, {"test": 50})["test"])
    after = set(hold_out([*SENTENCES, *(f"New {number}." for number in range(20))], {"test": 50})["test"])
    assert len(before & after) >= 40


def test_joined_lines_keep_the_order_of_the_text_and_the_limits() -> None:
    lines = list(join_neighbours(SENTENCES, lines=10, min_words=8, max_words=12))
    assert len(lines) == 10
    assert lines[1] == "Sentence number 20. Sentence number 21. Sentence number 22."
    assert all(8 <= len(line.split()) <= 12 for line in lines)
