from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.data.pair_files import PairFile, read_pairs, read_references
from fairseq_aggdec.data.text_files import write_lines
from fairseq_aggdec.errors import AggdecError


def pairs(folder: Path, **entry: Any) -> list[tuple[str, str]]:
    return list(read_pairs([PairFile(**entry)], folder, beside=folder))


def test_two_files(tmp_path: Path) -> None:
    write_lines(tmp_path / "a", ["one  two ", "three"])
    write_lines(tmp_path / "b", ["1 2", "3"])
    write_lines(tmp_path / "long", ["1", "2", "3"])
    assert pairs(tmp_path, source="a", target="b") == [("one two", "1 2"), ("three", "3")]
    assert pairs(tmp_path, source="a", target="b", first=1) == [("one two", "1 2")]
    entry = PairFile(source="a", target="b", references=["b", "a"], without="t", first=1)
    assert list(map(list, read_references([entry], tmp_path))) == [["1 2"], ["one wo"]]  # changed as the pairs are
    with pytest.raises(AggdecError, match=r"a ends after 2 lines, .*long does not: they must have as many"):
        pairs(tmp_path, source="a", target="long")
    with pytest.raises(AggdecError, match=r"a ends after 2 lines, .*long does not: they must have as many"):
        pairs(tmp_path, source="long", target="a")
    with pytest.raises(AggdecError, match="no does not exist: set AGGDEC_DATA"):
        pairs(tmp_path, source="no", target="no")
    with pytest.raises(AggdecError, match="one of source and target, file, m2, corrections, made_by"):
        PairFile(file="a", m2="b")


def test_table(tmp_path: Path) -> None:
    write_lines(tmp_path / "table", ["x\tHe did n't . <::::> She did .\tz", "x\ty\tz"])
    assert pairs(tmp_path, file="table", columns=[2, 0]) == [("z", "x"), ("z", "x")]
    split = pairs(tmp_path, file="table", columns=[0, 1], without="<::::>", treebank=True)
    assert split[0] == ("x", "He didn't. She did.")
    with pytest.raises(AggdecError, match="table, line 1: has no column 3"):
        pairs(tmp_path, file="table", columns=[0, 3])


def test_blocks(tmp_path: Path) -> None:
    write_lines(tmp_path / "blocks", ["\ufeffhard words", "", "easy words ", "***", "c", "d", "***"])
    assert pairs(tmp_path, file="blocks", blocks="***") == [("hard words", "easy words"), ("c", "d")]
    assert pairs(tmp_path, file="blocks", blocks="***", columns=[1, 0]) == [("easy words", "hard words"), ("d", "c")]
    write_lines(tmp_path / "blocks", ["a", "b", "***", "alone"])
    with pytest.raises(AggdecError, match="blocks, the block that ends at line 4: has 1 lines where 2 are expected"):
        pairs(tmp_path, file="blocks", blocks="***")


def test_gold_edits(tmp_path: Path) -> None:
    """The first annotator's first choice; tokens split as asked for."""
    edits = ["A 1 2|||V|||goes||went|||REQUIRED|||-NONE-|||0", "A 3 4|||P|||!|||REQUIRED|||-NONE-|||1"]
    write_lines(tmp_path / "gold.m2", ["S He go home.", *edits, ""])
    assert pairs(tmp_path, m2="gold.m2", tokens="words") == [("He go home .", "He goes home .")]


def test_corrections_are_references(tmp_path: Path) -> None:
    write_lines(tmp_path / "table", ["1\t他 去学\t他去上学\t他去学校", "2\t好\t没有错误"])
    entry = PairFile(corrections="table", tokens="characters")
    assert pairs(tmp_path, **vars(entry)) == [("他 去 学", "他 去 上 学"), ("好", "好")]
    assert read_references([entry], tmp_path) == [["他 去 上 学", "好"], ["他 去 学 校", "好"]]
    assert read_references([replace(entry, first=1)], tmp_path) == [["他 去 上 学"], ["他 去 学 校"]]
    assert read_references([PairFile(file="table")], tmp_path) == []


def test_pairs_that_a_package_makes(tmp_path: Path) -> None:
    """Its modules may import each other, and one of another folder may be called the same."""
    for name in ("one", "another"):
        write_lines(tmp_path / name / "maker/words.py", [f"WORDS = ['{name}  thing', 'more']"])
        lines = ["from .words import WORDS", "def pairs(times): return zip(WORDS * times, WORDS * times)"]
        write_lines(tmp_path / name / "maker/__init__.py", lines)
        made = pairs(tmp_path / name, made_by="maker", settings={"times": 2}, first=3)
        assert made == [(f"{name} thing", f"{name} thing"), ("more", "more"), (f"{name} thing", f"{name} thing")]
    with pytest.raises(AggdecError, match=r"nobody/__init__.py does not exist: made_by names a folder beside"):
        pairs(tmp_path, made_by="nobody")
