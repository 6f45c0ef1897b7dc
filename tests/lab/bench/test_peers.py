"""Other programs beside this plugin's modes: CTranslate2, and fairseq's non-autoregressive models."""

import json
import multiprocessing
import os
import signal
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary, data_utils

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.lab.bench.ctranslate2_runner import CTranslate2Runner, convert
from fairseq_aggdec.lab.bench.modes import ModeSpec, NatPeer
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.rounds import decode_once
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject
from tests.lab.bench.tiny import LENGTH, TINY_BART, tiny_model, tiny_subject
from tests.support.helpers import ToyModel, generate_here, parse_generate, refused_with
from tests.support.random_nat import ARCHITECTURES, LENGTH_PREDICTORS, write_random_nat


def test_ctranslate2_says_what_greedy_says(tmp_path: Path) -> None:
    """Two programs, one model (like BART's; others: test_measure.py): the conversion and the limits are right."""
    with Runs(tiny_subject(tiny_model(tmp_path, TINY_BART, drafter_layers=0))) as runs:
        ours, theirs = (
            decode_once(runs.runner(ModeSpec.parse(name), 2))
            for name in ("greedy", "ctranslate2:greedy")
        )
    for sentence, output in ours.outputs.items():
        other = theirs.outputs[sentence]
        assert (other.tokens, other.stats) == (output.tokens, None)
        assert len(output.tokens) == LENGTH + 1


def test_a_model_of_fairseq_hydra_train_is_converted_and_an_unknown_one_refused(
    tiny: RandomModel, tmp_path: Path
) -> None:
    """The former's options stand in groups, beside flat ones of other sizes, which fairseq adds and does not read."""
    state = torch.load(tiny.checkpoint, weights_only=False)
    flat = vars(state["cfg"]["model"])
    names = "embed_dim ffn_embed_dim attention_heads layers normalize_before"
    groups = {
        side: {name: flat[f"{side}_{name}"] for name in names.split()}
        for side in ("encoder", "decoder")
    }
    unread = {
        name: 512 for name in flat if name.endswith(("_dim", "_layers", "_heads"))
    }
    state["cfg"]["model"] = {**flat, **unread, **groups, "_name": "transformer"}
    torch.save(state, tmp_path / "model.pt")
    data = str(tiny.folder)
    languages = ("src", "tgt")
    made = convert(str(tmp_path / "model.pt"), data, languages, tmp_path)
    assert (made / "model.bin").is_file()
    empty = tmp_path / "empty"
    empty.mkdir()
    with refused_with(r"cannot convert .*drafter.*nar_drafter"):
        convert(str(tiny.drafter), data, languages, empty)
    assert not list(empty.iterdir())


def test_a_precision_that_the_processor_lacks_is_refused(tiny: RandomModel) -> None:
    for mode, reason in (
        ("ctranslate2:greedy@fp16", r"fp16 on cpu: ValueError: Requested float16"),
        ("greedy@bf16", r"bf16 is for GPUs: on a CPU take --int8"),
    ):
        with Runs(tiny_subject(tiny)) as runs, refused_with(reason):
            runs.runner(ModeSpec.parse(mode), 2).decode(0)


def test_ctranslate2_has_a_process_of_its_own_which_is_named_if_it_is_killed(
    tiny: RandomModel,
) -> None:
    """In the process of the other modes its threads would slow them."""
    with Runs(tiny_subject(tiny)) as runs:
        runner = runs.runner(ModeSpec.parse("ctranslate2:beam5@int8"), 4)
        assert isinstance(runner, CTranslate2Runner)
        assert sorted(decode_once(runner).outputs) == list(range(5))
        assert runner.pid != os.getpid()
        os.kill(runner.pid, signal.SIGKILL)
        with refused_with(r"int8 on cpu: its process ended; if it"):
            runner.decode(0)
    assert not multiprocessing.active_children()


PASSES = 4


@pytest.fixture(scope="module")
def dictionary(toy_data: Path) -> Dictionary:
    return Dictionary.load(str(toy_data / "dict.src.txt"))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_tokens_and_passes_are_those_of_fairseq_generate(
    architecture: str, toy_data: Path, dictionary: Dictionary, tmp_path: Path
) -> None:
    checkpoint = write_random_nat(tmp_path / "nat.pt", architecture, dictionary)
    beam = 3 if architecture in LENGTH_PREDICTORS else 1
    masks_again = architecture == "cmlm_transformer"  # so that it needs all passes
    line = f"{toy_data} --gen-subset valid --task translation_lev --path {checkpoint} --cpu --batch-size 1 --print-step"
    settings = f"--iter-decode-max-iter {PASSES - 1} --iter-decode-with-beam {beam}"
    all_passes = ["--iter-decode-force-max-iter"] * masks_again
    expected = parse_generate(
        generate_here(*line.split(), *settings.split(), *all_passes)
    )
    source = data_utils.load_indexed_dataset(
        str(toy_data / "valid.src-tgt.src"), dictionary
    )
    sentences = [sentence.tolist() for sentence in source]
    subject = Subject("unread.pt", str(toy_data), sentences, "src", "tgt")
    with Runs(subject) as runs:
        mode = ModeSpec(
            "peer", "nat", nat=NatPeer("peer", str(checkpoint), PASSES, beam)
        )
        found = decode_once(runs.runner(mode, 3)).outputs
    assert sorted(found) == sorted(expected)
    for sentence, output in found.items():
        symbols = dictionary.string(torch.tensor(output.tokens)).split()
        assert symbols == expected[sentence].tokens
        assert output.passes == 1 + (expected[sentence].steps or 0)
    assert len({tuple(output.tokens) for output in found.values()}) > 2
    passes = {output.passes or 0 for output in found.values()}
    assert passes == {PASSES} if masks_again else 1 < max(passes) <= PASSES


def test_peers_are_measured_beside_the_modes(
    toy_model_dir: ToyModel,
    dictionary: Dictionary,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reference = tmp_path / "reference.txt"
    reference.write_bytes((toy_model_dir.data / "test.src").read_bytes())
    levt = write_random_nat(tmp_path / "levt.pt", "levenshtein_transformer", dictionary)
    cmlm = write_random_nat(tmp_path / "cmlm.pt", "cmlm_transformer", dictionary)
    places = f"{toy_model_dir.data} --path {toy_model_dir.checkpoint} --reference {reference}"
    settings = f"--limit 4 --repeats 2 --modes greedy,iad --no-memory --json {tmp_path / 'bench.json'}"
    peers = f"--nat-peer levt={levt} --nat-peer cmlm2={cmlm}:2:3"
    aggdec(["bench", *places.split(), *settings.split(), *peers.split()])
    _, _, *others = json.loads((tmp_path / "bench.json").read_text())["runs"]
    assert [run["mode"] for run in others] == ["levt", "cmlm2"]
    for run in others:
        assert (run["implementation"], run["precision"]) == ("fairseq", "fp32")
        assert run["times"]["rounds"] == 2
        assert "modules" not in run["times"]
        assert "accepted" not in run["counts"]
        assert "bleu" in run["counts"]
    assert others[1]["counts"]["iterations"] <= 2 * 4
    title = f"test of {toy_model_dir.data} by {toy_model_dir.checkpoint}, 4 sentences, cpu, 2 rounds\n"
    assert capsys.readouterr().out.startswith(title)


def test_other_models_and_dictionaries_are_refused(
    toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    subject = Subject("unread.pt", str(toy_model_dir.data), [[5, 6, 2]], "src", "tgt")
    other = Dictionary()
    other.add_symbol("alone")
    small = write_random_nat(tmp_path / "other.pt", "cmlm_transformer", other)
    for path, reason in (
        (toy_model_dir.checkpoint, "is a transformer, none of fairseq's non-auto"),
        (small, f"has 5 symbols in its encoder, the dictionary in {subject.data} has"),
    ):
        with (
            Runs(subject) as runs,
            refused_with(f"--nat-peer mine: {path} {reason}"),
        ):
            runs.runner(ModeSpec("mine", "nat", nat=NatPeer("mine", str(path), 4)), 1)
