"""Small models of each family, made by transformers (`scripts/hub_models`), decode here as they do there."""

import importlib.util
import json
import math
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data.data_utils import collate_tokens
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.verify.against_transformers import InTheirIds
from fairseq_aggdec.tasks.loading import batches_of
from tests.fuzzing.checking import mended_ngram_blocker
from tests.hub.imported_models import MODELS, NAMES, T5, Imported, differences
from tests.support.helpers import PLUGIN, generate_here, parse_generate

TEXTS = (
    "We're going out for Chinese.", "She likes miniskirts.", "Tom's 3,000 \u201cfriends\u201d\u2026 left at 9:30!",
    "Ünïcödé: 他说 \U0001f600 ½ km\u00b2.", "The old man, who had read the book, gave it to his daughter.",
)  # fmt: skip


@pytest.fixture(scope="module", params=NAMES)
def imported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Imported:
    return Imported(request.param, tmp_path_factory.mktemp("imported") / request.param)


def test_greedy_outputs_are_those_of_transformers_alone_and_in_batches_of_16(
    imported: Imported,
) -> None:
    rows = imported.rows
    assert len({tuple(row["output"]) for row in rows}) > len(rows) / 2
    assert [*differences(imported, rows, 1), *differences(imported, 4 * rows, 16)] == []
    for row in rows:
        assert (
            imported.of(row).model.decode(row["text"], "greedy").text == row["decoded"]
        )


def test_encoder_inputs_of_hostile_lines_are_those_of_transformers(
    imported: Imported,
) -> None:
    inputs = json.loads((MODELS / imported.name / "hostile.json").read_text("utf-8"))
    lines = json.loads((MODELS / "hostile_lines.json").read_text("utf-8"))
    for line, tokens, theirs in zip(
        lines, imported.of(imported.forward[0]).inputs(lines), inputs, strict=True
    ):
        assert tokens == theirs, line[:80]


@pytest.mark.parametrize("name", T5)
def test_logits_of_long_texts_are_those_of_transformers(
    name: str, tmp_path: Path
) -> None:
    """Padded texts, and outputs, longer than the distances that T5 tells apart, all at once and token by token."""
    ours = Imported(name, tmp_path / "imported").of(
        {"source_lang": "", "target_lang": ""}
    )
    theirs = json.loads((MODELS / name / "logits.json").read_text("utf-8"))
    model = ours.model.models[0]
    symbols = model.encoder.dictionary
    number = {place: symbols.index(token) for token, place in ours.source.items()}
    texts, outputs = (
        [torch.tensor([number[token] for token in row]) for row in theirs[side]]
        for side in ("inputs", "outputs")
    )
    read = torch.stack(outputs)
    read[:, 0] = symbols.eos()
    encoded = model.encoder(collate_tokens(texts, symbols.pad(), left_pad=True))
    state: dict[Any, Any] = {}
    steps = [
        model.decoder(read[:, :end], encoded, state)[0]
        for end in range(1, read.size(1) + 1)
    ]
    missing = symbols.pad() if name == "madlad" else symbols.bos()
    few = [number[token] for token in range(3, 9)]
    wanted = torch.tensor(theirs["logits of 3 to 8, each 32nd"])
    for found in (model.decoder(read, encoded)[0], torch.cat(steps, 1)):
        torch.testing.assert_close(found[:, ::32, few], wanted, rtol=1e-5, atol=5e-5)
        assert (found.argmin(-1) == missing).all()


@pytest.mark.parametrize("name", T5)
def test_t5_keeps_the_keys_of_each_hypothesis_of_a_beam(
    name: str, tmp_path: Path
) -> None:
    """Their scores, token by token, are those of a forced decoder that reads them at once."""
    imported = Imported(name, tmp_path / "imported")
    ours = imported.of(imported.rows[0]).model
    [model] = ours.models
    texts = [ours.encode(row["text"]) for row in imported.rows]
    (batch,) = batches_of(ours.task, texts, len(texts))
    search = Namespace(beam=4, nbest=4, max_len_b=20)
    decoding = ours.task.decoding.with_mode("beam")
    generator = ours.task.build_generator(ours.models, search, decoding=decoding)
    found = ours.task.inference_step(generator, ours.models, batch)
    for text, hypotheses in zip(batch["net_input"]["src_tokens"], found, strict=True):
        assert len(hypotheses) == 4
        encoded = model.encoder(text[None])
        for one in hypotheses:
            read = one["tokens"].roll(1)  # EOS first
            scores = model.decoder(read[None], encoded)[0][0].log_softmax(-1)
            chosen = scores.gather(1, one["tokens"][:, None])[:, 0]
            torch.testing.assert_close(
                one["positional_scores"], chosen, rtol=1e-4, atol=1e-4
            )


def by_fairseq(
    ours: InTheirIds, rows: Sequence[dict[str, Any]], search: dict[str, Any]
) -> list[list[list[int]]]:
    """What fairseq's own generator finds, best first, where encoder and decoder get what they got in transformers."""
    task = ours.model.task
    models = ours.model.models
    names = {"beam": "beam_size", "lenpen": "len_penalty"}
    sides = (task.source_dictionary, ours.source), (task.target_dictionary, ours.target)
    numbers = [
        {theirs: words.index(name) for name, theirs in side.items()}
        for words, side in sides
    ]
    texts = [
        torch.tensor([numbers[0][token] for token in row["input"]]) for row in rows
    ]
    source = {
        "src_tokens": collate_tokens(texts, 1, left_pad=True),
        "src_lengths": torch.tensor([*map(len, texts)]),
    }
    forced = [
        [numbers[1][token] for token in row["output"][1 : 1 + len(task.form.forced)]]
        for row in rows
    ]
    search = {names.get(name, name): value for name, value in search.items()}
    with mended_ngram_blocker():
        generator = SequenceGenerator(models, task.target_dictionary, **search)
        prefix = torch.tensor(forced) if task.form.forced else None
        found = generator.generate(models, {"net_input": source}, prefix_tokens=prefix)
    return [[one["tokens"].tolist() for one in own] for own in found]


def test_modes_search_as_fairseqs_generator_copy_the_text_alone_and_accept_drafts(
    imported: Imported,
) -> None:
    rows = imported.forward
    ours = imported.of(imported.forward[0], drafter=imported.folder / "model.pt")
    model = ours.model
    task = ours.model.task
    texts = [model.encode(row["text"]) for row in rows]
    (batch,) = batches_of(task, texts, len(texts))
    order = batch["id"].tolist()
    searches = {
        beam: {**model.search, "beam": beam, "max_len_b": 60} for beam in (1, 4)
    }
    stock = {
        beam: by_fairseq(ours, [rows[number] for number in order], searches[beam])
        for beam in searches
    }
    half = sum(len(tokens) for (tokens,) in stock[1]) // 2
    # these copy their input
    copies = imported.name in ("bart", "flan_t5")
    least = {"iad": copies, "speculative": half, "aggressive-beam": 1}
    # fairseq's own search decodes it
    if imported.name in T5:
        del least["aggressive-beam"]
    for mode, beam in {
        "greedy": 1,
        "iad": 1,
        "speculative": 1,
        "beam": 4,
        "aggressive-beam": 4,
    }.items():
        decoding = task.decoding.with_mode(
            mode, **({"drafts": "whole"} if mode in ("iad", "speculative") else {})
        )
        search = Namespace(**searches[beam], retain_iter_history=True)
        generator = task.build_generator(model.models, search, decoding=decoding)
        found = task.inference_step(generator, model.models, batch)
        assert [[one["tokens"].tolist() for one in own] for own in found] == stock[
            beam
        ], mode
        if mode in least:
            assert sum(sum(own[0]["stats"].accepted) for own in found) >= least[mode], (
                mode
            )
        if mode == "iad" and task.source_dictionary == task.target_dictionary:
            draft = found[0][0]["history"][0]["tokens"].tolist()
            assert [token for token in draft if token not in task.form.forced] == texts[
                order[0]
            ].tolist()


def test_a_drafter_on_t5s_encoder_drafts_what_fairseqs_generator_finds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    imported = Imported("flan_t5", tmp_path / "imported")
    rows = imported.rows
    text = tmp_path / "text"
    text.write_text("".join(f"{row['text']}\n" for row in rows), "utf-8")
    texts = f"-s en -t de --train {text} --valid {text}"
    aggdec(f"binarize {imported.folder} {tmp_path}/data {texts}".split())
    files = f"--verifier {imported.folder}/model.pt --data {tmp_path}/data --out {tmp_path}/out"
    aggdec(f"drafter {files} --block-size 3 --updates 60 --cpu".split())
    caplog.set_level("INFO")
    ours = imported.of(rows[0], drafter=tmp_path / "out/drafter.pt")
    task = ours.model.task
    search = {**ours.model.search, "beam": 1, "max_len_b": 60}
    encoded = [ours.model.encode(row["text"]) for row in rows]
    (batch,) = batches_of(task, encoded, len(rows))
    decoding = task.decoding.with_mode("gad", drafts="whole")
    generator = task.build_generator(
        ours.model.models, Namespace(**search), decoding=decoding
    )
    found = task.inference_step(generator, ours.model.models, batch)
    stock = by_fairseq(ours, [rows[number] for number in batch["id"]], search)
    assert [[one["tokens"].tolist() for one in own] for own in found] == stock
    tokens = sum(len(own[0]["tokens"]) for own in found)
    # how many, depends on how the processor adds
    assert sum(sum(own[0]["stats"].accepted) for own in found) > tokens / 4
    assert "drafter.pt shares the verifier's encoder" in caplog.text


def test_fairseq_generate_has_the_same_outputs(
    imported: Imported, tmp_path: Path
) -> None:
    rows = imported.forward
    ours = imported.of(imported.forward[0])
    (tmp_path / "text").write_text("".join(f"{row['text']}\n" for row in rows), "utf-8")
    folder = imported.folder
    pair = f"-s {ours.model.source_lang} -t {ours.model.target_lang}"
    files = f"{folder} {tmp_path}/data {pair} --test {tmp_path}/text"
    aggdec(f"binarize {files}".split())
    command = f"{tmp_path}/data --user-dir {PLUGIN} {pair} --path {folder}/model.pt --max-len-b 60 --bpe hub"
    command += f" --hub-folder {folder}"
    command += " --block-ngrams" if imported.name == "bart" else ""
    searches = ["--task aggressive_hub_translation --decoding greedy"]
    if imported.name in ("nllb_legacy", "marian_two"):
        searches.append("--task hub_translation --beam 1")
    for search in searches:
        lines = generate_here(*f"{command} {search}".split())
        texts = {
            line.split("\t")[0]: line.split("\t")[-1]
            for line in lines.splitlines()
            if line.startswith("D-")
        }
        for number, row in enumerate(rows):
            assert texts[f"D-{number}"] == row["decoded"]
            found = parse_generate(lines)[number]
            tokens = [ours.target[name] for name in found.tokens]
            assert tokens == row["output"][-len(tokens) - 1 : -1]
            scores = [score / math.log(2) for score in row["log_probabilities"]]
            assert found.positional == pytest.approx(scores, abs=3e-4)


@pytest.mark.parametrize(
    "name, pair",
    [
        ("bart", ""),
        ("m2m_100", "-s en -t de"),
        ("marian", ""),
        ("marian_multi", "-s eng -t deu"),
        ("marian_two", ""),
        ("nllb", "-s eng_Latn -t deu_Latn"),
        ("byt5", ""),
    ],
)
def test_verify_compares_a_download_with_transformers_or_says_what_to_install(
    name: str,
    pair: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "text").write_text("\n\n".join(TEXTS), "utf-8")
    command = f"verify {MODELS / name} --against-transformers --input {tmp_path / 'text'} {pair}".split()
    if importlib.util.find_spec("transformers"):
        aggdec(command)
        assert (
            capsys.readouterr().out
            == f"{len(TEXTS)} sentences, 0 otherwise than in transformers\n"
        )
    else:
        with pytest.raises(
            AggdecError, match="needs transformers: pip install transformers"
        ):
            aggdec(command)
