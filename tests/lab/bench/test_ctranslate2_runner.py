"""Tests of `fairseq_aggdec.lab.bench.ctranslate2_runner`."""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench import ctranslate2_runner
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.rounds import compare, decode_once
from fairseq_aggdec.lab.bench.runs import Runs
from tests.lab.bench.tiny import LENGTH, TINY_BART, tiny_model, tiny_subject


@pytest.mark.parametrize("like_bart", [False, True])
def test_it_says_what_greedy_says(like_bart: bool, tiny: RandomModel, tmp_path: Path) -> None:
    """Two programs, one model: the conversion and the limits are right."""
    model = tiny_model(tmp_path, TINY_BART, drafter_layers=0) if like_bart else tiny
    with Runs(tiny_subject(model)) as runs:
        made = [runs.runner(Mode.parse(name), 2) for name in ("greedy", "ctranslate2:greedy")]
        ours, theirs = compare(made, repeats=1)
    for number, output in ours.outputs.items():
        assert theirs.outputs[number].tokens == output.tokens
        assert len(output.tokens) == LENGTH + 1
        assert theirs.outputs[number].stats is None


def test_a_model_of_fairseq_hydra_train_is_converted_and_an_unknown_one_refused(
    tiny: RandomModel, tmp_path: Path
) -> None:
    """The former's options stand in groups, beside flat ones of other sizes, which fairseq adds and does not read."""
    state = torch.load(tiny.checkpoint, weights_only=False)
    flat = vars(state["cfg"]["model"])
    names = ("embed_dim", "ffn_embed_dim", "attention_heads", "layers", "normalize_before")
    groups = {side: {name: flat[f"{side}_{name}"] for name in names} for side in ("encoder", "decoder")}
    unread = {name: 512 for name in flat if name.endswith(("_dim", "_layers", "_heads"))}
    state["cfg"]["model"] = {**flat, **unread, **groups, "_name": "transformer"}
    torch.save(state, tmp_path / "model.pt")
    where = (str(tiny.folder), ("src", "tgt"))
    assert (ctranslate2_runner.convert(str(tmp_path / "model.pt"), *where, tmp_path) / "model.bin").is_file()
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(AggdecError, match=r"cannot convert .*drafter.*nar_drafter"):
        ctranslate2_runner.convert(str(tiny.drafter), *where, empty)
    assert not list(empty.iterdir())


def test_a_precision_that_the_processor_lacks_is_refused(tiny: RandomModel) -> None:
    for mode, reason in (
        ("ctranslate2:greedy@fp16", r"ctranslate2 in fp16 on cpu: ValueError: Requested float16"),
        ("greedy@bf16", r"bf16 is for GPUs: on a CPU take --int8"),
    ):
        with Runs(tiny_subject(tiny)) as runs, pytest.raises(AggdecError, match=reason):
            runs.runner(Mode.parse(mode), 2).decode(0)


def test_it_has_a_process_of_its_own_which_is_named_if_it_is_killed(tiny: RandomModel) -> None:
    """In the process of the other modes its threads would slow them."""
    with Runs(tiny_subject(tiny)) as runs:
        runner = runs.runner(Mode.parse("ctranslate2:beam5@int8"), 4)
        assert isinstance(runner, ctranslate2_runner.CTranslate2Runner)
        assert sorted(decode_once(runner).outputs) == list(range(5))
        assert runner.pid != os.getpid()
        os.kill(runner.pid, signal.SIGKILL)
        with pytest.raises(AggdecError, match=r"ctranslate2 in int8 on cpu: its process ended; if it was killed"):
            runner.decode(0)
    assert not multiprocessing.active_children()
