"""M2: files of gold edits, the lattice of an output's edits, and the counts of the official scorer."""

import gzip
import re
from pathlib import Path
from random import Random
from time import process_time

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.m2_file import M2Sentence, read_m2
from fairseq_aggdec.lab.score.m2_score import M2Counts, corpus_m2, edits_from_references

MANUAL = """S The cat sat at mat .
A 3 4 on 0
A 4 4 the||a 0

S The dog .
A 1 2 dogs 0
A -1 -1 -NONE- 1

S Giant otters is an apex predator .
A 2 3 are 0
A 3 4 -NONE- 0
A 5 6 predators 0
A 1 2 otter 1
"""
"""the official scorer's example; its manual works out the result"""
MESSY = "\n\nS a b\nI note\nA 0 1  3\n\n\n\nS c"
CHINESE = "S 我 喜欢 吃 平果\nA 1 2 很 爱 0\nA 3 4 苹果 0\n"


def read(folder: Path, text: str) -> list[M2Sentence]:
    """The sentences of a file; a line `A START END CORRECTIONS ANNOTATOR` here is short for one of M2."""
    whole = re.sub(
        r"^A (\S+ \S+) (.*) (\S+)$",
        r"A \1|||type|||\2|||REQUIRED|||-NONE-|||\3",
        text,
        flags=re.MULTILINE,
    )
    path = folder / "gold.m2.gz"
    path.write_bytes(gzip.compress(whole.encode()))
    return read_m2(path)


def shown(sentence: M2Sentence) -> str:
    """The tokens, and the edits of each annotator."""
    parts = [" ".join(sentence.tokens)]
    for annotator, edits in sentence.annotators.items():
        parts.append(f"by {annotator}")
        parts += (f"{e.start} {e.end} {'|'.join(e.corrections)}" for e in edits)
    return ", ".join(parts)


@pytest.mark.parametrize(
    "text, sentences",
    [
        (
            MANUAL,
            [
                "The cat sat at mat ., by 0, 3 4 on, 4 4 the|a",
                "The dog ., by 0, 1 2 dogs, by 1",
                "Giant otters is an apex predator ., by 0, 2 3 are, 3 4 , 5 6 predators, by 1, 1 2 otter",
            ],
        ),
        # comments, blank lines, an empty correction; without annotators: one who changes nothing
        (MESSY, ["a b, by 3, 0 1 ", "c, by 0"]),
    ],
)
def test_what_files_hold(text: str, sentences: list[str], tmp_path: Path) -> None:
    assert list(map(shown, read(tmp_path, text))) == sentences


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "holds no sentences"),
        ("S a\nS b\n", "line 2: after a sentence come 'A ' lines"),
        ("S a\nA 0 1 y me\n", "line 2: not an edit"),
    ],
)
def test_what_is_no_m2_is_refused_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(AggdecError, match=f"gold.m2.*{message}"):
        read(tmp_path, text)


def test_characters(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, CHINESE)
    expected = "我 喜 欢 吃 平 果, by 0, 1 3 很 爱, 4 6 苹 果"
    assert shown(sentence.in_characters()) == expected


@pytest.mark.parametrize(
    "gold, outputs, correct, proposed, wanted",
    [
        # worked out in the manual: four right edits, one needless (The -> A), one missing (predators)
        (
            MANUAL,
            "A cat sat on the mat .\nThe dog .\nGiant otters are apex predator .",
            *(4, 5, 5),
        ),
        # against 1 none of 1 is right, of 1; after a good beginning F0.5 is higher with the right edit against 0
        ("S a b c\nA 0 1 x 0\nA 1 2 x 0\nA 2 3 x 0\nA 1 2 y 1", "x b c", *(1, 1, 3)),
        # the unchanged source scores best where nobody wants anything
        ("S a b c\nA 0 1 x 0\nA -1 -1 -NONE- 4", "a b c", *(0, 0, 0)),
    ],
)
def test_counts_of_sentences(
    gold: str, outputs: str, correct: int, proposed: int, wanted: int, tmp_path: Path
) -> None:
    lines = [line.split() for line in outputs.splitlines()]
    counts = corpus_m2(lines, read(tmp_path, gold))
    assert counts == M2Counts(correct, proposed, wanted)


@pytest.mark.parametrize(
    "annotator, noise, counts",
    [
        # the official scorer misses one of two gold edits that meet, so do we
        (0, 0, M2Counts(411, 412, 412)),
        (1, 0, M2Counts(526, 527, 527)),
        # one token of ten and of four doubled, dropped or swapped; of this scorer, whose lattice was that of a slow one
        (0, 10, M2Counts(390, 876, 413)),
        (1, 4, M2Counts(445, 1534, 517)),
    ],
)
def test_counts_of_an_official_file(
    annotator: int, noise: int, counts: M2Counts, aggdec_data: Path
) -> None:
    gold = read_m2(aggdec_data / "ua-gec" / "gec-only.test.m2.gz")[:500]
    outputs = []
    for index, sentence in enumerate(gold):
        output: list[str] = []
        at = 0
        for edit in sentence.annotators[annotator]:
            output += sentence.tokens[at : edit.start]
            output += edit.corrections[0].split()
            at = edit.end
        output += sentence.tokens[at:]
        outputs.append(noisy(output, noise, Random(index)) if noise else output)
    began = process_time()
    assert corpus_m2(outputs, gold) == counts
    assert process_time() - began < 30  # 1 s on an idle core


def noisy(tokens: list[str], one_of: int, rng: Random) -> list[str]:
    """One token of so many is doubled, dropped, or put before its neighbour."""
    output = list(tokens)
    for place in sorted(rng.sample(range(len(tokens)), len(tokens) // one_of))[::-1]:
        token = output.pop(place)
        at, copies = rng.choice([(0, 2), (0, 0), (1, 1)])
        output[place + at : place + at] = [token] * copies
    return output


def test_scores_of_counts() -> None:
    counts = M2Counts(correct=6, proposed=8, gold=24)
    assert counts.precision == 0.75
    assert counts.recall == 0.25
    # precision counts four times as much in the harmonic mean
    assert counts.f == pytest.approx(5 / (4 / 0.75 + 1 / 0.25))
    unchanged = M2Counts(0, 0, 5)
    assert (unchanged.precision, unchanged.recall, unchanged.f) == (1, 0, 0)


def test_edits_from_references() -> None:
    source = "a b c d".split()
    output = "a x c".split()
    (sentence,) = edits_from_references([source], [[output], [source]])
    assert shown(sentence) == "a b c d, by 0, 1 2 x, 3 4 , by 1"
    # each reference is perfect against its edits
    assert corpus_m2([output], [sentence]) == M2Counts(2, 2, 2)
