"""The paragraphs of help pages, with Tatoeba's sentences beside them."""

from pathlib import Path

import pytest
from experiments.corpora import libreoffice_help, tatoeba
from experiments.steps import Steps
from experiments.text_files import read_pairs

from fairseq_aggdec.errors import AggdecError
from tests.configs.experiments.preparing import experiment, write_gzipped

COMMON = "Every page says this long sentence about how to open the menu of it"
TATOEBA = {
    "HELD_OUT": {"valid": 2, "test": 3},
    "LONG_WORDS": 0,
    "LONG_SHARE": 0,
    "JOINED_PAIRS": 0,
}


def paragraphs(page: int) -> list[str]:
    """Two long paragraphs, a short one, and one that every page has."""
    long = [f"On page {page} there is this paragraph {x} of ten words" for x in "ab"]
    texts = [*long, f"Page {page}", COMMON]
    return [f"page{page}.html\tid\t{text}\tDeutsch: {text}" for text in texts]


def test_whole_pages_are_held_out_and_what_they_share_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line for page in range(10) for line in paragraphs(page)]
    write_gzipped(tmp_path / libreoffice_help.FILE, lines)
    rain = [f"It rains {n} days.\tEs regnet {n} Tage." for n in range(20)]
    both = f"{COMMON}\tDeutsch: {COMMON}"
    write_gzipped(tmp_path / "tatoeba-en-de/deu.txt.gz", [*rain, both])
    monkeypatch.setattr(libreoffice_help, "HELD_OUT", {"test": 6, "valid": 3})
    for name, value in TATOEBA.items():
        monkeypatch.setattr(tatoeba, name, value)
    folder = tmp_path / "text"
    steps = Steps(experiment("help_en_de_base").EXPERIMENT, tmp_path, tmp_path)
    libreoffice_help.text_with_tatoeba(steps, folder)

    sources = {
        name: [
            source
            for source, _ in read_pairs(folder / f"{name}.en", folder / f"{name}.de")
        ]
        for name in ("train", "valid", "test", "tatoeba")
    }
    assert [len(sources[name]) for name in ("valid", "test", "tatoeba")] == [3, 6, 3]
    held_out = " ".join(sources["valid"] + sources["test"]).split()
    pages = {word for word in held_out if word.isdigit()}
    of_pages = [text for text in sources["train"] if "rains" not in text]
    assert of_pages
    assert not any(pages & set(text.split()) for text in of_pages)
    assert COMMON not in of_pages, "a held-out page has it"
    assert len(sources["train"]) - len(of_pages) == 20 - 2 - 3

    monkeypatch.setattr(libreoffice_help, "HELD_OUT", {"test": 100})
    message = r"has too few long paragraphs for test: 21 instead of 100"
    with pytest.raises(AggdecError, match=message):
        libreoffice_help.parts(steps)
