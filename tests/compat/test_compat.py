"""Checkpoints: what loads, what is refused, and that a refused one runs nothing; and what training needs."""

import argparse
import builtins
import importlib.machinery
import importlib.util
import itertools
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
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
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf

import fairseq_aggdec
from fairseq_aggdec.compat.checkpoints import CheckpointError, read_checkpoint
from fairseq_aggdec.compat.install import install
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks import loading
from tests.support.helpers import PLUGIN, ToyModel

fairseq_aggdec.register()


class Call:
    """Unpickled without a check, it calls a function."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


def state_of(toy: ToyModel) -> dict[str, Any]:
    return read_checkpoint(toy.checkpoint)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that exists only if a checkpoint's code was run."""
    return tmp_path / "executed"


def test_numpy_numbers_of_both_numpy_versions(
    toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    """fairseq-train --eval-bleu saves counts as arrays; some versions saved the best score as a numpy scalar."""
    values: list[Any] = [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.ones((2, 3))),
        np.array([True, False]),
    ]
    values += [np.array([1.5, -2.0], dtype=">f4"), np.float64(27.5)]
    state, path = (
        {**state_of(toy_model_dir), "extra_state": values},
        tmp_path / "checkpoint.pt",
    )
    torch.save(state, path, _use_new_zipfile_serialization=False)
    numpy2 = path.read_bytes()
    for content in (numpy2, numpy2.replace(b"numpy._core", b"numpy.core")):
        path.write_bytes(content)
        loaded = read_checkpoint(path)["extra_state"]
        for found, value in zip(loaded, values, strict=True):
            np.testing.assert_array_equal(found, value)
            # numpy unpickles into the native order
            assert found.dtype == value.dtype.newbyteorder("=")
        assert type(pickle.loads(pickle.dumps(loaded[0] + 1))) is np.ndarray


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy pickle"])
def test_refuses_code_and_runs_nothing(
    toy_model_dir: ToyModel, tmp_path: Path, marker: Path, zipped: bool
) -> None:
    path, state = tmp_path / "hostile.pt", state_of(toy_model_dir)
    for value, name in [
        (Call(os.system, f"touch {marker}"), f"{os.name}.system"),
        (Call(builtins.eval, f"open({str(marker)!r}, 'w')"), r"\S*eval"),
        (
            np.array([Call(open, str(marker), "w")], dtype=object),
            r"(_?io\.open|numpy data that are not numbers)",
        ),
        (np.zeros(1, dtype=[("a", "O")]), "numpy data that are not numbers"),
    ]:
        torch.save(
            {**state, "extra_state": value}, path, _use_new_zipfile_serialization=zipped
        )
        for load in (read_checkpoint, checkpoint_utils.load_checkpoint_to_cpu):
            with pytest.raises(
                CheckpointError,
                match=rf"refused: it holds {name}.*nothing was executed",
            ):
                load(str(path))
            assert not marker.exists()
        if isinstance(value, Call):
            torch.load(path, weights_only=False)
            assert marker.exists(), "the checkpoint of this test is not hostile"
            marker.unlink()


def test_what_is_no_checkpoint_is_refused_with_file_and_reason(
    toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    good, path = toy_model_dir.checkpoint.read_bytes(), tmp_path / "broken.pt"
    torch.save(state_of(toy_model_dir), path, _use_new_zipfile_serialization=False)
    legacy = path.read_bytes()
    contents: list[tuple[Any, str]] = [
        (good[: len(good) // 2], "truncated or damaged"),
        (legacy[: len(legacy) // 2], "truncated or damaged"),
        (b"", "an empty file"),
        (b"The quick brown fox\n" * 9, "not a PyTorch file"),
        (torch.zeros(3), "holds a Tensor, not a fairseq checkpoint"),
        ({"state_dict": {}, "epoch": 3}, "holds state_dict, epoch"),
        ({"model": {}, "args": None}, r"needs `model` and `cfg` \(or `args`\)"),
        (
            {**state_of(toy_model_dir), "model": []},
            "its `model` is of type list; name a file that fairseq-train saved",
        ),
        ({**state_of(toy_model_dir), "cfg": [1]}, "its `cfg` is of type ListConfig"),
        (
            {**state_of(toy_model_dir), "cfg": {"model": [1]}},
            "its `cfg.model` is of type ListConfig",
        ),
        (None, "no such file"),
    ]
    for content, reason in contents:
        if content is None:
            path.unlink()
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            torch.save(content, path)
        with pytest.raises(CheckpointError, match=f"{path}: .*{reason}"):
            checkpoint_utils.load_model_ensemble([str(path)])


def test_a_model_that_was_trained_in_half_precision_decodes_in_single_precision_unless_another_is_asked_for() -> (
    None
):
    """As in stock fairseq; both shipped models were trained with --bf16."""
    from fairseq.models.transformer import TransformerModel

    def hub(decoding: str, task: dict[str, Any] | None = None, **options: Any) -> Any:
        own = {
            "_name": "aggressive_translation",
            "data": folder,
            "decoding": decoding,
            **(task or {}),
        }
        return TransformerModel.from_pretrained(folder, "model.pt", task=own, **options)

    folder = str(Path(fairseq_aggdec.__file__).parent / "demo" / "gec")
    ours, theirs = hub("iad"), hub("beam")
    source = ours.encode("She have two brother , and they goes to school .")
    found, expected = (
        model.generate([source], beam=1)[0][0] for model in (ours, theirs)
    )
    assert found["tokens"].tolist() == expected["tokens"].tolist()
    assert (
        found["positional_scores"].sub(expected["positional_scores"]).abs().max() < 1e-4
    )
    asked = [
        hub("iad", bf16=True),
        hub("iad", {"bf16": True}),
        hub("iad", {"int8": True}),
    ]
    precisions = [model.task.decoding.arithmetic.precision for model in (ours, *asked)]
    assert precisions == ["own", "bf16", "bf16", "int8"]


def test_options_that_an_old_checkpoint_does_not_have_are_not_taken_for_true(
    toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    """fairseq reads the default `${common.bf16}` of a field as a text, which is not empty."""
    from fairseq.models.transformer import TransformerModel

    state = read_checkpoint(toy_model_dir.checkpoint)
    absent = ("bf16", "sampling", "retain_dropout", "score_reference")
    stored = {
        name: value
        for name, value in vars(state["cfg"]["model"]).items()
        if name not in absent
    }
    stored |= {
        "arch": "transformer",
        "task": "aggressive_translation",
        "decoding": "greedy",
        "fp16": True,
    }
    args = argparse.Namespace(**stored)
    torch.save({**state, "cfg": None, "args": args}, tmp_path / "model.pt")
    hub = TransformerModel.from_pretrained(
        str(tmp_path), "model.pt", str(toy_model_dir.data)
    )
    cfg = hub.task.cfg
    assert not any(
        (cfg.fp16, cfg.bf16, cfg.sampling, cfg.retain_dropout, cfg.score_reference)
    )
    assert hub.task.decoding.arithmetic.precision == "own"


@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize(
    "limits", [{"max_tokens": 100}, {"max_sentences": 5, "max_tokens": 60}]
)
@pytest.mark.parametrize("count", [0, 7, 60])
def test_every_sentence_has_a_batch(
    count: int, limits: dict[str, int], multiple: int
) -> None:
    """fairseq after 0.12.2 dropped a last batch whose size is no multiple of eight."""
    lengths = np.arange(count) % 7 + 3
    batches = data_utils.batch_by_size(
        np.arange(count)[::-1].copy(),
        lambda i: lengths[i],
        lengths,
        required_batch_size_multiple=multiple,
        **limits,
    )
    assert [i for batch in batches for i in batch] == list(range(count))[::-1]


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_training_that_is_resumed_in_a_later_epoch_misses_no_sentence_and_repeats_none(
    rebuild: bool,
) -> None:
    """fairseq after 0.12.2 made other batches for each epoch in which a training was started."""
    words = Dictionary()
    sentences = [torch.tensor([words.eos()] * (1 + number % 3)) for number in range(60)]
    lengths = [len(sentence) for sentence in sentences]

    def iterator(epoch: int) -> EpochBatchIterator:
        task = FairseqTask(argparse.Namespace(rebuild_batches=rebuild))
        data = LanguagePairDataset(
            sentences, lengths, words, sentences, lengths, words, shuffle=True
        )
        return task.get_batch_iterator(data, max_sentences=4, epoch=epoch)

    def read(epoch_iterator: Any, number: int | None = None) -> list[list[int]]:
        return [
            batch["id"].tolist() for batch in itertools.islice(epoch_iterator, number)
        ]

    whole = iterator(1)
    for _ in range(2):
        read(whole.next_epoch_itr())
    current = whole.next_epoch_itr()
    before = read(current, 5)
    stopped, after = whole.state_dict(), read(current)
    resumed = iterator(3)
    resumed.load_state_dict(stopped)
    assert read(resumed.next_epoch_itr()) == after
    assert sorted(itertools.chain(*before, *after)) == list(range(60))
    assert read(resumed.next_epoch_itr()) == read(whole.next_epoch_itr())


@pytest.mark.parametrize(
    ("command", "given", "message"),
    [
        (
            "generation",
            "--decoding iad",
            "--decoding is an option of --task aggressive_translation: add --task aggre",
        ),
        (
            "interactive_generation",
            "--task translation --decoding=iad",
            "add --task aggressive_translation",
        ),
        (
            "generation",
            "data --task speech_to_text --decoding iad",
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
    ],
)
def test_an_option_without_its_task_is_one_line_that_says_what_to_type(
    command: str,
    given: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = [] if command == "training" else ["--path", "model.pt"]
    monkeypatch.setattr(
        "sys.argv", ["fairseq-command", "data-bin", *path, *given.split()]
    )
    with pytest.raises(AggdecError, match=message):
        options.parse_args_and_arch(getattr(options, f"get_{command}_parser")())
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(
        "sys.argv",
        [
            "fairseq-generate",
            "data-bin",
            "--path",
            "model.pt",
            "--no-such-thing",
            "--nbes",
        ],
    )
    with pytest.raises(SystemExit):  # other unknown arguments are left to fairseq
        options.parse_args_and_arch(options.get_generation_parser())
    assert (
        "error: unrecognized arguments: --no-such-thing --nbes"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("given", "has_torch_xla", "tpu"),
    [("--bf16", 0, 0), ("--bf16", 1, 1), ("--tpu", 0, 1)],
)
def test_bfloat16_is_not_taken_for_a_tpu(
    given: str, has_torch_xla: int, tpu: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq's way stays where a TPU can be used or is asked for."""
    find = importlib.util.find_spec
    xla = importlib.machinery.ModuleSpec("torch_xla", None) if has_torch_xla else None
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: xla if name == "torch_xla" else find(name),
    )
    monkeypatch.setattr("sys.argv", ["fairseq-train"])
    command = ["data", "--arch", "transformer_tiny", given]
    parsed = options.parse_args_and_arch(options.get_training_parser(), command)
    assert (parsed.bf16, parsed.tpu) == (given == "--bf16", tpu)


def test_a_training_in_float16_on_a_cpu_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ended in an assertion about CUDA; fairseq-generate takes --fp16 on a CPU."""
    command = ["data", "--fp16", "--cpu"]
    with pytest.raises(
        AggdecError,
        match="--fp16: fairseq trains in it on GPUs alone; on a CPU take --bf16",
    ):
        options.parse_args_and_arch(
            options.get_training_parser(), [*command, "--arch", "transformer_tiny"]
        )
    monkeypatch.setattr("sys.argv", ["fairseq-generate"])
    assert options.parse_args_and_arch(
        options.get_generation_parser(), [*command, "--path", "a.pt"]
    ).fp16


def test_allow_list_is_in_force_only_while_a_checkpoint_is_read(
    toy_model_dir: ToyModel,
) -> None:
    state_of(toy_model_dir)
    with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
        torch.load(toy_model_dir.checkpoint, weights_only=True)


def _receive(rank: int, rendezvous: str) -> None:
    install()
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2
    )
    sent = {
        "args": argparse.Namespace(lr=[0.1]),
        "model": {"weight": torch.arange(3)},
        "best": np.float64(2),
    }
    group = torch.distributed.group.WORLD
    received = distributed_utils.broadcast_object(
        sent if rank == 0 else None, src_rank=0, group=group
    )
    assert received["args"] == sent["args"]
    assert received["best"] == 2
    assert torch.equal(received["model"]["weight"], torch.arange(3))
    torch.distributed.destroy_process_group()


def test_a_loaded_checkpoint_reaches_the_other_workers(tmp_path: Path) -> None:
    rendezvous = str(tmp_path / "rendezvous")
    torch.multiprocessing.start_processes(
        _receive, (rendezvous,), nprocs=2, start_method="fork"
    )


@pytest.mark.parametrize(
    ("shape", "is_fused"), [((2, 20), False), ((2, 400), True), ((2, 20, 80), True)]
)
def test_short_sentences_are_trained_without_the_fused_attention_on_a_cpu(
    shape: tuple[int, ...], is_fused: bool
) -> None:
    found, model = [], MagicMock()

    def criterion(_: Any, sample: dict[str, Any]) -> Any:
        # PyTorch's setting, of a CPU's as well
        found.append(torch.backends.cuda.flash_sdp_enabled())
        return torch.zeros(()), 1, {}

    words = torch.ones(2, 20, dtype=torch.long)
    tokens = {
        "src_tokens": torch.ones(shape),
        "src_lengths": torch.tensor([20, 3]),
        "prev_output_tokens": words,
    }
    FairseqTask(argparse.Namespace()).train_step(
        {"net_input": tokens}, model, criterion, MagicMock(), 1
    )
    assert (found, torch.backends.cuda.flash_sdp_enabled()) == ([is_fused], True)


def test_a_model_that_is_to_translate_the_other_way_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """fairseq decodes on."""
    (model := tmp_path / "model.pt").symlink_to(PLUGIN / "demo/mt/model.pt")
    # `aggdec verify` loads a model several times
    for languages in (("de", "en"), ("de", "en"), ("en", "de")):
        loading.load(str(model), str(PLUGIN / "demo/mt"), *languages)
    said = f"checkpoint {model}: was trained for en-de, and is to decode de-en here: check --source-lang and --target-"
    assert [
        message for message in caplog.messages if message.startswith(said)
    ] == caplog.messages[-1:]


@pytest.mark.parametrize("from_yaml", [False, True])
def test_non_autoregressive_models_keep_their_options(from_yaml: bool) -> None:
    """Without the mend a configuration's would be lost, and training end at the first batch."""
    options: dict[str, Any] = {
        "encoder_embed_dim": 8,
        "decoder_layers": 1,
        "encoder_layers": 1,
        "decoder_embed_dim": 8,
    }
    options |= {"share_all_embeddings": True, "label_smoothing": 0.2}
    words = Dictionary()
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)

    def build(architecture: str, **more: Any) -> Any:
        given = {**options, **more}
        args: Any = argparse.Namespace(arch=architecture, **given)
        if from_yaml:
            args = OmegaConf.create(
                {"criterion": 0.2, "model": {"_name": architecture, **given}}
            ).model
            args.label_smoothing = "${criterion}"
        return build_model(args, task)

    inat = build(
        "iterative_nonautoregressive_transformer", pred_length_offset=True, train_step=3
    )
    assert (
        inat.decoder.pred_length_offset,
        inat.train_step,
        inat.args.label_smoothing,
    ) == (True, 3, 0.2)
    assert build("levenshtein_transformer", early_exit="1,1,1").decoder.early_exit == [
        1,
        1,
        1,
    ]


def test_the_best_length_is_chosen_in_bfloat16_and_on_a_gpu_too() -> None:
    """numpy, of which fairseq asks it, reads neither."""
    scores = [torch.tensor(score).bfloat16() for score in (-2.0, -1.0, -3.0)]
    assert iterative_refinement_generator.np.argmax(scores) == 1


def test_rows_of_some_sentences_are_filled_in_among_those_of_all() -> None:
    mask, rows = (
        torch.tensor([True, False, True]),
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
    )
    filled = levenshtein_transformer._fill(None, mask, rows, 0.0)
    assert filled.tolist() == [[1, 2], [0, 0], [3, 4]]
    assert levenshtein_transformer._fill(None, mask, None, 0.0) is None
    assert levenshtein_transformer._fill(
        filled, ~mask, torch.tensor([[5.0]]), 9.0
    ).tolist() == [[1, 2], [5, 9], [3, 4]]


def test_a_transformer_takes_swish() -> None:
    """fairseq's command line refuses it, and would give its layers a class."""
    line = ["data", "--arch", "transformer", "--activation-fn", "swish"]
    args = options.parse_args_and_arch(options.get_training_parser(), line)
    assert utils.get_activation_fn(args.activation_fn) is torch.nn.functional.silu
