"""The paragraphs of help pages, with Tatoeba's sentences beside them."""

from pathlib import Path

import pytest
from experiments.corpora import libreoffice_help, tatoeba
from experiments.steps import Steps
from experiments.text_files import read_pairs

from fairseq_aggdec.errors import AggdecError
from tests.configs.experiments.preparing import experiment, write_gzipped

COMMON = "Every page says this long sentence about how to open the menu of it\tJede Seite sagt das"


def paragraphs(page: int) -> list[str]:
    """Two long paragraphs, a short one, and one that every page has."""
    long = [
        f"On page {page} there is this paragraph {x} of ten words\tAbsatz {x} von Seite {page}"
        for x in "ab"
    ]
    pairs = [*long, f"Page {page}\tSeite {page}", COMMON]
    return [f"page{page}.html\tid\t{pair}" for pair in pairs]


def test_whole_pages_are_held_out_and_what_they_share_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line for page in range(10) for line in paragraphs(page)]
    write_gzipped(tmp_path / libreoffice_help.FILE, lines)
    sentences = [f"It rains {n} days.\tEs regnet {n} Tage." for n in range(20)] + [
        COMMON
    ]
    write_gzipped(tmp_path / "tatoeba-en-de/deu.txt.gz", sentences)
    monkeypatch.setattr(libreoffice_help, "HELD_OUT", {"test": 6, "valid": 3})
    monkeypatch.setattr(tatoeba, "HELD_OUT", {"valid": 2, "test": 3})
    monkeypatch.setattr(tatoeba, "LONG_WORDS", 0)
    monkeypatch.setattr(tatoeba, "LONG_SHARE", 0)
    monkeypatch.setattr(tatoeba, "JOINED_PAIRS", 0)
    folder = tmp_path / "text"
    steps = Steps(experiment("help_en_de_base").EXPERIMENT, tmp_path, tmp_path)
    libreoffice_help.text_with_tatoeba(steps, folder)
    read = {
        name: list(read_pairs(folder / f"{name}.en", folder / f"{name}.de"))
        for name in ("train", "valid", "test", "tatoeba")
    }
    assert {name: len(pairs) for name, pairs in read.items()} | {"train": 0} == {
        "train": 0, "valid": 3, "test": 6, "tatoeba": 3
    }  # fmt: skip
    held_out = {
        word
        for name in ("valid", "test")
        for text, _ in read[name]
        for word in text.split()
        if word.isdigit()
    }
    assert held_out
    of_pages = [text for text, _ in read["train"] if "rains" not in text]
    assert of_pages
    assert not any(
        text.split()[-1] in held_out or f"On page {page} " in text
        for text in of_pages
        for page in held_out
    )
    assert COMMON.partition("\t")[0] not in of_pages, "a held-out page has it"
    assert len(read["train"]) - len(of_pages) == 20 - 2 - 3

    monkeypatch.setattr(libreoffice_help, "HELD_OUT", {"test": 100})
    with pytest.raises(
        AggdecError, match=r"has too few long paragraphs for test: 21 instead of 100"
    ):
        libreoffice_help.parts(steps)
