"""Checkpoints: what loads, what is refused, and that a refused one runs nothing; and what training needs."""

import argparse
import builtins
import importlib.util
import itertools
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
import torch.multiprocessing
from fairseq import checkpoint_utils, iterative_refinement_generator, options, utils
from fairseq.data import Dictionary, LanguagePairDataset, data_utils
from fairseq.data.iterators import EpochBatchIterator
from fairseq.distributed import utils as distributed_utils
from fairseq.models import build_model
from fairseq.models.nat import levenshtein_transformer
from fairseq.models.transformer import TransformerModel
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf

from fairseq_aggdec.compat.checkpoints import CheckpointError, read_checkpoint
from fairseq_aggdec.compat.install import install
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks import loading
from tests.support.helpers import PLUGIN, ToyModel
from tests.support.random_models import task_of


class Call:
    """Unpickled without a check, it calls a function."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.function = function
        self.arguments = arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


@pytest.fixture(scope="module")
def state(toy_model_dir: ToyModel) -> dict[str, Any]:
    return read_checkpoint(toy_model_dir.checkpoint)


def test_numpy_numbers_of_both_numpy_versions(
    state: dict[str, Any], tmp_path: Path
) -> None:
    """fairseq-train --eval-bleu saves counts as arrays; some versions saved the best score as a numpy scalar."""
    values: list[Any] = [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.ones((2, 3))),
        np.array([True, False]),
        np.array([1.5, -2.0], dtype=">f4"),
        np.float64(27.5),
    ]
    path = tmp_path / "checkpoint.pt"
    content = {**state, "extra_state": values}
    torch.save(content, path, _use_new_zipfile_serialization=False)
    numpy2 = path.read_bytes()
    for data in (numpy2, numpy2.replace(b"numpy._core", b"numpy.core")):
        path.write_bytes(data)
        loaded = read_checkpoint(path)["extra_state"]
        for found, value in zip(loaded, values, strict=True):
            np.testing.assert_array_equal(found, value)
            # numpy unpickles into the native order
            assert found.dtype == value.dtype.newbyteorder("=")
        assert type(pickle.loads(pickle.dumps(loaded[0] + 1))) is np.ndarray


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy pickle"])
def test_refuses_code_and_runs_nothing(
    state: dict[str, Any], tmp_path: Path, zipped: bool
) -> None:
    path = tmp_path / "hostile.pt"
    marker = tmp_path / "executed"
    for value, name in [
        (Call(os.system, f"touch {marker}"), f"{os.name}.system"),
        (Call(builtins.eval, f"open({str(marker)!r}, 'w')"), r"\S*eval"),
        (
            np.array([Call(open, str(marker), "w")], dtype=object),
            r"(_?io\.open|numpy data that are not numbers)",
        ),
        (np.zeros(1, dtype=[("a", "O")]), "numpy data that are not numbers"),
    ]:
        content = {**state, "extra_state": value}
        torch.save(content, path, _use_new_zipfile_serialization=zipped)
        refused = rf"refused: it holds {name}.*nothing was executed"
        for load in (read_checkpoint, checkpoint_utils.load_checkpoint_to_cpu):
            with pytest.raises(CheckpointError, match=refused):
                load(str(path))
            assert not marker.exists()
        if isinstance(value, Call):
            torch.load(path, weights_only=False)
            assert marker.exists(), "the checkpoint of this test is not hostile"
            marker.unlink()


def test_what_is_no_checkpoint_is_refused_with_file_and_reason(
    state: dict[str, Any], toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    path = tmp_path / "broken.pt"
    torch.save(state, path, _use_new_zipfile_serialization=False)
    files = {
        toy_model_dir.checkpoint.read_bytes()[:5000]: "truncated or damaged",
        path.read_bytes()[:5000]: "truncated or damaged",
        b"": "an empty file",
        b"The quick brown fox\n" * 9: "not a PyTorch file",
    }
    objects: list[tuple[object, str]] = [
        (torch.zeros(3), "holds a Tensor, not a fairseq checkpoint"),
        ({"state_dict": {}, "epoch": 3}, "holds state_dict, epoch"),
        ({"model": {}, "args": None}, r"needs `model` and `cfg` \(or `args`\)"),
        ({**state, "model": []}, "its `model` is of type list; name a file that"),
        ({**state, "cfg": [1]}, "its `cfg` is of type ListConfig"),
        ({**state, "cfg": {"model": [1]}}, "its `cfg.model` is of type ListConfig"),
    ]

    def refused(reason: str) -> None:
        with pytest.raises(CheckpointError, match=f"{path}: .*{reason}"):
            checkpoint_utils.load_model_ensemble([str(path)])

    for data, reason in files.items():
        path.write_bytes(data)
        refused(reason)
    for content, reason in objects:
        torch.save(content, path)
        refused(reason)
    path.unlink()
    refused("no such file")


def test_a_model_that_was_trained_in_half_precision_decodes_in_single_precision_unless_another_is_asked_for() -> (
    None
):
    """As in stock fairseq; both shipped models were trained with --bf16."""
    folder = str(PLUGIN / "demo" / "gec")

    def hub(decoding: str, task: dict[str, Any] | None = None, **options: Any) -> Any:
        given = {"data": folder, "decoding": decoding, **(task or {})}
        given["_name"] = "aggressive_translation"
        return TransformerModel.from_pretrained(
            folder, "model.pt", task=given, **options
        )

    models = [hub("iad"), hub("beam")]
    source = models[0].encode("She have two brother , and they goes to school .")
    ours, theirs = (model.generate([source], beam=1)[0][0] for model in models)
    assert torch.equal(ours["tokens"], theirs["tokens"])
    torch.testing.assert_close(
        ours["positional_scores"], theirs["positional_scores"], atol=1e-4, rtol=0
    )
    asked = [
        hub("iad", bf16=True),
        hub("iad", {"bf16": True}),
        hub("iad", {"int8": True}),
    ]
    precisions = [
        model.task.decoding.arithmetic.precision for model in (models[0], *asked)
    ]
    assert precisions == ["model", "bf16", "bf16", "int8"]


def test_options_that_an_old_checkpoint_does_not_have_are_not_taken_for_true(
    state: dict[str, Any], toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    """fairseq reads the default `${common.bf16}` of a field as a text, which is not empty."""
    args = argparse.Namespace(**vars(state["cfg"]["model"]))
    flags = ("bf16", "sampling", "retain_dropout", "score_reference")
    for name in flags:
        vars(args).pop(name, None)
    args.arch = "transformer"
    args.task = "aggressive_translation"
    args.decoding = "greedy"
    args.fp16 = True
    torch.save({**state, "cfg": None, "args": args}, tmp_path / "model.pt")
    task = TransformerModel.from_pretrained(
        str(tmp_path), "model.pt", str(toy_model_dir.data)
    ).task
    assert not any(task.cfg[name] for name in ("fp16", *flags))
    assert task.decoding.arithmetic.precision == "model"


@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize("max_sentences", [None, 5])
@pytest.mark.parametrize("count", [0, 7, 60])
def test_every_sentence_has_a_batch(
    count: int, max_sentences: int | None, multiple: int
) -> None:
    """fairseq after 0.12.2 dropped a last batch whose size is no multiple of eight."""
    lengths = np.arange(count) % 7 + 3
    batches = data_utils.batch_by_size(
        np.arange(count)[::-1].copy(),
        lambda i: lengths[i],
        lengths,
        max_tokens=60,
        max_sentences=max_sentences,
        required_batch_size_multiple=multiple,
    )
    assert [i for batch in batches for i in batch] == list(range(count))[::-1]


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_training_that_is_resumed_in_a_later_epoch_misses_no_sentence_and_repeats_none(
    rebuild: bool,
) -> None:
    """fairseq after 0.12.2 made other batches for each epoch in which a training was started."""
    words = Dictionary()
    sentences = [torch.tensor([words.eos()] * (1 + number % 3)) for number in range(60)]
    side = sentences, [len(sentence) for sentence in sentences], words

    def iterator(epoch: int) -> EpochBatchIterator:
        task = FairseqTask(argparse.Namespace(rebuild_batches=rebuild))
        data = LanguagePairDataset(*side, *side, shuffle=True)
        return task.get_batch_iterator(data, max_sentences=4, epoch=epoch)

    def read(batches: Any, count: int | None = None) -> list[list[int]]:
        return [batch["id"].tolist() for batch in itertools.islice(batches, count)]

    whole = iterator(1)
    for _ in range(2):
        read(whole.next_epoch_itr())
    current = whole.next_epoch_itr()
    before = read(current, 5)
    stopped = whole.state_dict()
    after = read(current)
    resumed = iterator(3)
    resumed.load_state_dict(stopped)
    assert read(resumed.next_epoch_itr()) == after
    assert sorted(itertools.chain(*before, *after)) == list(range(60))
    assert read(resumed.next_epoch_itr()) == read(whole.next_epoch_itr())


def parsed(command: str, given: str) -> argparse.Namespace:
    """fairseq's arguments of a command: `training`, `generation` or `interactive_generation`."""
    parser = getattr(options, f"get_{command}_parser")()
    return options.parse_args_and_arch(parser, ["data-bin", *given.split()])


@pytest.mark.parametrize(
    "command, given, message",
    [
        (
            "generation",
            "--decoding iad",
            "of --task aggressive_translation: add --task",
        ),
        (
            "interactive_generation",
            "--task translation --decoding=iad",
            "add --task aggressive_translation",
        ),
        (
            "generation",
            "--task speech_to_text --decoding iad",
            "add --task aggressive_speech_to_text",
        ),
        (
            "training",
            "--arch transformer --blocks-per-sentence 2",
            "add --task block_drafting",
        ),
        (
            "generation",
            "--task aggressive_translation --decodings iad",
            "--decodings: .* nearest is --decoding, of",
        ),
        # it ended in an assertion about CUDA
        (
            "training",
            "--arch transformer_tiny --fp16 --cpu",
            "--fp16: fairseq trains in it on GPUs alone; on a CPU take --bf16",
        ),
    ],
)
def test_what_cannot_be_is_one_line_that_says_what_to_type(
    command: str, given: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "" if command == "training" else " --path model.pt"
    with pytest.raises(AggdecError, match=message):
        parsed(command, given + path)
    assert capsys.readouterr().err == ""


def test_what_is_no_option_of_this_plugin_is_left_to_fairseq(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parsed("generation", "--path model.pt --no-such-thing --nbes")
    error = capsys.readouterr().err
    assert "error: unrecognized arguments: --no-such-thing --nbes" in error
    assert parsed("generation", "--path model.pt --fp16 --cpu").fp16


@pytest.mark.parametrize(
    "given, has_torch_xla, tpu",
    [("--bf16", False, False), ("--bf16", True, True), ("--tpu", False, True)],
)
def test_bfloat16_is_not_taken_for_a_tpu(
    given: str, has_torch_xla: bool, tpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq's way stays where a TPU can be used or is asked for."""
    find = importlib.util.find_spec
    stand_in = "torch" if has_torch_xla else "no_such_module"

    def find_spec(name: str) -> Any:
        return find(stand_in if name == "torch_xla" else name)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    args = parsed("training", f"--arch transformer_tiny {given}")
    assert (args.bf16, args.tpu) == (given == "--bf16", tpu)


def test_allow_list_is_in_force_only_while_a_checkpoint_is_read(
    toy_model_dir: ToyModel,
) -> None:
    read_checkpoint(toy_model_dir.checkpoint)
    with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
        torch.load(toy_model_dir.checkpoint, weights_only=True)


def _receive(rank: int, rendezvous: str) -> None:
    install()
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2
    )
    sent = {"args": argparse.Namespace(lr=[0.1]), "best": np.float64(2)}
    received = distributed_utils.broadcast_object(
        None if rank else sent, src_rank=0, group=torch.distributed.group.WORLD
    )
    assert received == sent
    torch.distributed.destroy_process_group()


def test_a_loaded_checkpoint_reaches_the_other_workers(tmp_path: Path) -> None:
    rendezvous = str(tmp_path / "rendezvous")
    torch.multiprocessing.start_processes(
        _receive, (rendezvous,), nprocs=2, start_method="fork"
    )


@pytest.mark.parametrize(
    "shape, is_fused", [((2, 20), False), ((2, 400), True), ((2, 20, 80), True)]
)
def test_short_sentences_are_trained_without_the_fused_attention_on_a_cpu(
    shape: tuple[int, ...], is_fused: bool
) -> None:
    found = []

    def criterion(_: Any, sample: dict[str, Any]) -> Any:
        # PyTorch's setting, of a CPU's as well
        found.append(torch.backends.cuda.flash_sdp_enabled())
        return torch.zeros(()), 1, {}

    sample = {"net_input": {"src_tokens": torch.ones(shape)}}
    task = FairseqTask(argparse.Namespace())
    task.train_step(sample, MagicMock(), criterion, MagicMock(), 1)
    assert found == [is_fused]
    assert torch.backends.cuda.flash_sdp_enabled()


def test_a_model_that_is_to_translate_the_other_way_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """fairseq decodes on."""
    model = tmp_path / "model.pt"
    model.symlink_to(PLUGIN / "demo/mt/model.pt")
    # `aggdec verify` loads a model several times
    for languages in (("de", "en"), ("de", "en"), ("en", "de")):
        loading.load(str(model), str(PLUGIN / "demo/mt"), *languages)
    (warning,) = [message for message in caplog.messages if str(model) in message]
    assert "was trained for en-de, and is to decode de-en here: check --sou" in warning


@pytest.mark.parametrize("from_yaml", [False, True])
def test_non_autoregressive_models_keep_their_options(from_yaml: bool) -> None:
    """Without the patch a configuration's would be lost, and training end at the first batch."""
    task = task_of(Dictionary())
    shape = {"encoder_embed_dim": 8, "decoder_embed_dim": 8}
    shape |= {"encoder_layers": 1, "decoder_layers": 1}

    def build(architecture: str, **given: Any) -> Any:
        given |= {**shape, "share_all_embeddings": True, "label_smoothing": 0.2}
        if not from_yaml:
            return build_model(argparse.Namespace(arch=architecture, **given), task)
        given |= {"_name": architecture, "label_smoothing": "${criterion}"}
        return build_model(
            OmegaConf.create({"criterion": 0.2, "model": given}).model, task
        )

    inat = build(
        "iterative_nonautoregressive_transformer", pred_length_offset=True, train_step=3
    )
    assert inat.decoder.pred_length_offset
    assert (inat.train_step, inat.args.label_smoothing) == (3, 0.2)
    levenshtein = build("levenshtein_transformer", early_exit="1,1,1")
    assert levenshtein.decoder.early_exit == [1, 1, 1]


def test_the_best_length_is_chosen_in_bfloat16_and_on_a_gpu_too() -> None:
    """numpy, of which fairseq asks it, reads neither."""
    scores = [torch.tensor(score).bfloat16() for score in (-2.0, -1.0, -3.0)]
    assert iterative_refinement_generator.np.argmax(scores) == 1


def test_rows_of_some_sentences_are_filled_in_among_those_of_all() -> None:
    fill = levenshtein_transformer._fill
    mask = torch.tensor([True, False, True])
    filled = fill(None, mask, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 0.0)
    assert filled.tolist() == [[1, 2], [0, 0], [3, 4]]
    assert fill(None, mask, None, 0.0) is None
    refilled = fill(filled, ~mask, torch.tensor([[5.0]]), 9.0)
    assert refilled.tolist() == [[1, 2], [5, 9], [3, 4]]


def test_a_transformer_takes_swish() -> None:
    """fairseq's command line refuses it, and would give its layers a class."""
    args = parsed("training", "--arch transformer --activation-fn swish")
    assert utils.get_activation_fn(args.activation_fn) is torch.nn.functional.silu
