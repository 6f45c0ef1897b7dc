"""The stage `synthetic` of the correctors of full size, which make pairs of clean text that the user names."""

from pathlib import Path

import pytest

from tests.configs.recording import recorded

PLACES = {"conll14_gec": "synthetic/pairs", "gec_bart_12_2": "synthetic/pairs"}


@pytest.mark.parametrize("experiment", PLACES)
def test_pairs_are_made_once(experiment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = tmp_path / "clean.txt"
    clean.write_text("A clean sentence.\n")
    monkeypatch.setenv("CLEAN_ENGLISH", str(clean))
    pairs = tmp_path / "work" / experiment / PLACES[experiment]
    given = recorded(experiment, "synthetic", folder=tmp_path, check=False)  # the replaced programs write no pairs
    assert given[0][3:6] == ["corrupt", str(clean), str(pairs)]
    assert "--tokens" in given[0]
    for side in ("src", "tgt"):
        Path(f"{pairs}.{side}").touch()
    again = recorded(experiment, "synthetic", folder=tmp_path, check=False)[len(given) :]
    assert again
    assert not [command for command in again if "corrupt" in command]
