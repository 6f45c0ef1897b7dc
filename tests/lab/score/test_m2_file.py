import gzip
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.m2_file import Edit, M2Sentence, read_m2

EXAMPLE = """S The cat sat at mat .
A 3 4|||Prep|||on|||REQUIRED|||-NONE-|||0
A 4 4|||ArtOrDet|||the||a|||REQUIRED|||-NONE-|||0

S The dog .
A 1 2|||NN|||dogs|||REQUIRED|||-NONE-|||0
A -1 -1|||noop|||-NONE-|||-NONE-|||-NONE-|||1

S Giant otters is an apex predator .
A 2 3|||SVA|||are|||REQUIRED|||-NONE-|||0
A 3 4|||ArtOrDet|||-NONE-|||REQUIRED|||-NONE-|||0
A 5 6|||NN|||predators|||REQUIRED|||-NONE-|||0
A 1 2|||NN|||otter|||REQUIRED|||-NONE-|||1
"""
"""the official scorer's example; its manual works out the result"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_annotators_have_edits_and_gzipped_files_comments_and_blank_lines(tmp_path: Path) -> None:
    cat, dog, otters = read_m2(write(tmp_path / "gold.m2", EXAMPLE))
    assert cat == M2Sentence(
        tuple("The cat sat at mat .".split()), {0: (Edit(3, 4, ("on",)), Edit(4, 4, ("the", "a")))}
    )
    assert dog.annotators == {0: (Edit(1, 2, ("dogs",)),), 1: ()}
    assert otters.annotators[0][1] == Edit(3, 4, ("",))  # -NONE- deletes
    assert set(otters.annotators) == {0, 1}
    path = tmp_path / "gold.m2.gz"
    path.write_bytes(gzip.compress(b"\n\nS a b\nI note\nA 0 1|||x||||||REQUIRED|||-NONE-|||3\n\n\n\nS c"))
    first, second = read_m2(path)
    assert first.annotators == {3: (Edit(0, 1, ("",)),)}  # an empty correction deletes too
    assert second == M2Sentence(("c",), {0: ()})  # without annotators: one who changes nothing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no sentences"),
        ("S a\nS b\n", "line 2: after a sentence come 'A ' lines"),
        ("S a\nA 0 1|||x|||y|||REQUIRED|||-NONE-|||me\n", "line 2: not an edit"),
    ],
)
def test_what_is_no_m2_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(AggdecError, match=f"gold.m2.*{message}"):
        read_m2(write(tmp_path / "gold.m2", text))


def test_characters(tmp_path: Path) -> None:
    text = "S 我 喜欢 吃 平果\nA 1 2|||x|||很 爱|||REQUIRED|||-NONE-|||0\nA 3 4|||x|||苹果|||REQUIRED|||-NONE-|||0\n"
    (sentence,) = read_m2(write(tmp_path / "gold.m2", text))
    edits = (Edit(1, 3, ("很 爱",)), Edit(4, 6, ("苹 果",)))
    assert sentence.in_characters() == M2Sentence(tuple("我喜欢吃平果"), {0: edits})
