from pathlib import Path
from time import process_time

from fairseq_aggdec.lab.score.m2_file import Edit, M2Sentence, read_m2
from fairseq_aggdec.lab.score.m2_score import M2Counts, corpus_m2, edits_from_references
from tests.lab.score.test_m2_file import EXAMPLE, write

SYSTEM = ["A cat sat on the mat .", "The dog .", "Giant otters are apex predator ."]


def test_the_official_manuals_example(tmp_path: Path) -> None:
    # Four right edits, one needless (The -> A), one missing (predator -> predators): 0.8 of each.
    counts = corpus_m2([line.split() for line in SYSTEM], read_m2(write(tmp_path / "gold.m2", EXAMPLE)))
    assert counts == M2Counts(correct=4, proposed=5, gold=5)
    assert (counts.precision, counts.recall, round(counts.f(), 9)) == (0.8, 0.8, 0.8)


def test_the_annotator_is_chosen_for_the_corpus_so_far() -> None:
    # Against 0 the output has 1 of 1 right of 3 gold edits, against 1 none of 1 right, of 1. After a good beginning
    # F0.5 is higher with the right edit.
    source = "a b c d e f g".split()
    gold = tuple(Edit(at, at + 1, ("x",)) for at in (0, 3, 6))
    sentence = M2Sentence(tuple(source), {0: gold, 1: (Edit(1, 2, ("y",)),)})
    assert corpus_m2([["x", *source[1:]]], [sentence]) == M2Counts(1, 1, 3)
    # The unchanged source scores best where nobody wants anything.
    assert corpus_m2([source], [M2Sentence(tuple(source), {0: gold, 4: ()})]) == M2Counts(0, 0, 0)


def test_edits_from_references() -> None:
    (sentence,) = edits_from_references([["a", "b", "c", "d"]], [[["a", "x", "c"]], [["a", "b", "c", "d"]]])
    assert sentence.annotators == {0: (Edit(1, 2, ("x",)), Edit(3, 4, ("",))), 1: ()}
    # each reference is perfect against its own edits
    assert corpus_m2([["a", "x", "c"]], [sentence]) == M2Counts(2, 2, 2)


def applied(sentence: M2Sentence, annotator: int) -> list[str]:
    output: list[str] = []
    at = 0
    for edit in sentence.annotators[annotator]:
        output += [*sentence.tokens[at : edit.start], *edit.corrections[0].split()]
        at = edit.end
    return [*output, *sentence.tokens[at:]]


def test_an_official_file(aggdec_data: Path) -> None:
    """Two annotators' own corrections and the source itself, counted as by the official scorer, in seconds.

    It misses one of two gold edits that meet (`,` before and after a changed word), so do we.
    """
    sentences = read_m2(aggdec_data / "ua-gec" / "gec-only.test.m2.gz")[:500]
    began = process_time()
    first, second = (corpus_m2([applied(sentence, n) for sentence in sentences], sentences) for n in (0, 1))
    assert (first, second) == (M2Counts(411, 412, 412), M2Counts(526, 527, 527))
    unchanged = corpus_m2([sentence.tokens for sentence in sentences], sentences)
    assert (unchanged.precision, unchanged.recall, unchanged.f()) == (1, 0, 0)
    assert process_time() - began < 30  # 2 s on an idle core
