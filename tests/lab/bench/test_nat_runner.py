"""Tests of `fairseq_aggdec.lab.bench.nat_runner`: stock fairseq-generate gives the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary, data_utils

import fairseq_aggdec
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.modes import Mode, NatPeer
from fairseq_aggdec.lab.bench.rounds import decode_once
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject
from tests.support.helpers import ToyModel, generate_here, parse_generate
from tests.support.random_nat import ARCHITECTURES, LENGTH_PREDICTORS, write_random_nat

PASSES = 4


@pytest.fixture(scope="module")
def dictionary(toy_data: Path) -> Dictionary:
    fairseq_aggdec.register()
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
    expected = parse_generate(generate_here(*line.split(), *settings.split(), *all_passes))
    source = data_utils.load_indexed_dataset(str(toy_data / "valid.src-tgt.src"), dictionary)
    subject = Subject("unread.pt", str(toy_data), [sentence.tolist() for sentence in source], "src", "tgt")
    with Runs(subject) as runs:
        mode = Mode("peer", "nat", nat=NatPeer("peer", str(checkpoint), PASSES, beam))
        found = decode_once(runs.runner(mode, 3)).outputs
    assert sorted(found) == sorted(expected)
    for number, output in found.items():
        assert dictionary.string(torch.tensor(output.tokens)).split() == expected[number].tokens
        assert output.passes == 1 + (expected[number].steps or 0)
    assert len({tuple(output.tokens) for output in found.values()}) > 2
    passes = {output.passes or 0 for output in found.values()}
    assert passes == {PASSES} if masks_again else 1 < max(passes) <= PASSES


def test_peers_are_measured_beside_the_modes(
    toy_model_dir: ToyModel, dictionary: Dictionary, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    assert [(run["mode"], run["implementation"]) for run in others] == [("levt", "fairseq"), ("cmlm2", "fairseq")]
    for run in others:
        assert (run["rounds"], run["precision"], run["modules"], run["accepted"]) == (2, "fp32", None, None)
        assert run["bleu"] is not None
    assert others[1]["iterations"] <= 2 * 4
    title = f"test of {toy_model_dir.data} by {toy_model_dir.checkpoint}, 4 sentences, cpu, 2 rounds\n"
    assert capsys.readouterr().out.startswith(title)


def test_other_models_and_dictionaries_are_refused(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    subject = Subject("unread.pt", str(toy_model_dir.data), [[5, 6, 2]], "src", "tgt")
    other = Dictionary()
    other.add_symbol("alone")
    small = write_random_nat(tmp_path / "other.pt", "cmlm_transformer", other)
    for path, reason in (
        (toy_model_dir.checkpoint, "is a transformer, none of fairseq's non-auto"),
        (small, f"has 5 symbols in its encoder, the dictionary in {subject.data} has"),
    ):
        with Runs(subject) as runs, pytest.raises(AggdecError, match=f"--nat-peer mine: {path} {reason}"):
            runs.runner(Mode("mine", "nat", nat=NatPeer("mine", str(path), 4)), 1)
