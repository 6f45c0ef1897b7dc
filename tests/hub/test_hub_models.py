"""Small models of each family, made by transformers (`make_models`), decode here as they do there."""

import importlib.util
import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.verify import against_transformers
from tests.hub.compare import MODELS, Imported, differences, rows_of
from tests.hub.hostile import hostile_lines
from tests.support.helpers import PLUGIN, generate_here

NAMES = sorted(path.parent.name for path in MODELS.glob("*/expected.json"))
ENGLISH = ("en_XX", "en", "eng_Latn", ">>eng<<")


@pytest.fixture(scope="module", params=NAMES)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    return Imported(request.param, tmp_path_factory.mktemp("imported") / request.param)


def test_greedy_outputs_are_those_of_transformers_alone_and_in_a_batch(imported: Imported) -> None:
    rows = rows_of(imported.name)
    assert len({tuple(row["output"]) for row in rows}) > len(rows) / 2
    for size in (1, len(rows)):
        assert [*differences(imported, rows, size)] == []
    assert imported.of(rows[0]).model.decode(rows[0]["text"], "greedy").text == rows[0]["decoded"]


def test_encoder_inputs_of_hostile_lines_are_those_of_transformers(imported: Imported) -> None:
    inputs = json.loads((MODELS / imported.name / "hostile.json").read_text("utf-8"))
    forward = next(row for row in rows_of(imported.name) if row["target_lang"] not in ENGLISH)
    lines = hostile_lines(len(inputs))
    for line, tokens, theirs in zip(lines, imported.of(forward).inputs(lines), inputs, strict=True):
        assert tokens == theirs, line[:80]


def test_lossless_modes_have_the_output_of_fairseqs_search_and_accept_drafts(imported: Imported) -> None:
    rows = rows_of(imported.name)
    texts = [row["text"] for row in rows if row["target_lang"] == rows[0]["target_lang"]]
    model = imported.of(rows[0], drafter=imported.folder / "model.pt")
    for beam, modes in {1: ("iad", "speculative"), 4: ("aggressive-beam",)}.items():
        stock = model.outputs(texts, 1, "beam", beam=beam)
        for mode in modes:
            found = model.outputs(texts, len(texts), mode, "whole" if mode == "speculative" else "", beam=beam)
            assert [own["output"] for own in found] == [own["output"] for own in stock], mode
            accepted, written = (sum(own["stats"].accepted) for own in found), (len(own["output"]) for own in found)
            least = {"iad": imported.name == "bart", "speculative": sum(written) // 2}  # BART's copies its input
            assert sum(accepted) >= least.get(mode, 1), mode


def test_fairseq_generate_has_the_same_outputs(imported: Imported, tmp_path: Path) -> None:
    rows = [row for row in rows_of(imported.name) if row["target_lang"] not in ENGLISH]
    model = imported.of(rows[0]).model
    (tmp_path / "text").write_text("".join(f"{row['text']}\n" for row in rows), "utf-8")
    pair = ["-s", model.source_lang, "-t", model.target_lang]
    aggdec(["binarize", str(imported.folder), str(tmp_path / "data"), *pair, "--test", str(tmp_path / "text")])
    printed = generate_here(
        tmp_path / "data", "--user-dir", PLUGIN, "--task", "aggressive_hub_translation", "--decoding", "greedy", *pair,
        "--path", imported.folder / "model.pt", "--bpe", "hub", "--hub-folder", imported.folder, "--max-len-b", "60",
        *(["--block-ngrams"] if imported.name == "bart" else []),
    )  # fmt: skip
    texts = {line.split("\t")[0]: line.split("\t")[-1] for line in printed.splitlines() if line.startswith("D-")}
    assert [texts[f"D-{number}"].replace("<unk>", "") for number in range(len(rows))] == [
        row["decoded"] for row in rows
    ]


@pytest.mark.parametrize("name", ["bart", "nllb", "marian_multi"])
def test_verify_compares_a_download_with_transformers_or_says_what_to_install(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = tmp_path / "text"
    text.write_text("We're going out for Chinese.\n\nShe likes miniskirts.\n", "utf-8")
    languages = {"nllb": ["-s", "eng_Latn", "-t", "deu_Latn"], "marian_multi": ["-s", "eng", "-t", "deu"]}
    command = ["verify", str(MODELS / name), "--against-transformers", "--input", str(text), *languages.get(name, [])]
    if importlib.util.find_spec("transformers"):
        aggdec(command)
        assert capsys.readouterr().out == "2 sentences, 0 otherwise than in transformers\n"
    else:
        with pytest.raises(AggdecError, match="needs transformers: pip install transformers"):
            against_transformers.differences(MODELS / name, (None, None), ["a"], 1)
