"""Drafters beside a verifier: loading them, whole or without what they share, and which encoder reads the source."""

from pathlib import Path
from typing import Any
from unittest import mock

import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary

from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.generation.drafter_checkpoint import load_drafter, only_drafter
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.tasks.aggressive_translation import (
    AggressiveTranslationConfig,
    AggressiveTranslationTask,
)
from fairseq_aggdec.train.exporting import keep_draft_length
from tests.support.helpers import refused_with
from tests.support.random_models import (
    dictionary,
    random_drafter,
    random_model,
    share_encoder,
)

WORDS = dictionary(20)
SIZES = {"embed_dim": 16, "ffn_embed_dim": 32, "layers": 2, "attention_heads": 2}
OPTIONS: Any = {
    "_name": "nar_drafter", "block_size": 6, "encoder": SIZES, "decoder": SIZES,
    "max_source_positions": 64, "max_target_positions": 64,
}  # fmt: skip
SOURCE = {
    "src_tokens": torch.tensor([[5, 6, 7, WORDS.eos()]]),
    "src_lengths": torch.tensor([4]),
}


def verifier(seed: int = 1) -> Any:
    return random_model(seed, WORDS)


def drafter_of(model: Any) -> NarDrafterModel:
    """Six tokens a block, with the model's encoder."""
    drafter = random_drafter("causal, post-norm sinusoidal", 2, WORDS, 6)
    share_encoder(drafter, model)
    return drafter


def task(words: Dictionary = WORDS) -> AggressiveTranslationTask:
    languages = {"source_lang": "src", "target_lang": "tgt"}
    return AggressiveTranslationTask(
        AggressiveTranslationConfig(**languages), words, words
    )


def save(
    folder: Path, drafter: NarDrafterModel, without: Any = None, **symbols: list[str]
) -> str:
    """A checkpoint, in which the weights of the model `without` are left out."""
    shared = {} if without is None else without.state_dict()
    weights = {
        name: value
        for name, value in drafter.state_dict().items()
        if name not in shared or not torch.equal(value, shared[name])
    }
    cfg = {"model": OPTIONS, "task": {"source_lang": "src"}}
    history = [
        {"num_updates": 1, "optimizer_name": "FairseqAdam", "lr_scheduler_state": {}}
    ]
    extra = {"train_iterator": {"epoch": 1}}
    state: Any = {"model": weights, "cfg": cfg, "args": None, "task_state": symbols}
    state |= {"optimizer_history": history, "extra_state": extra}
    torch.save(state, folder / "drafter.pt")
    return str(folder / "drafter.pt")


def test_the_file_is_read_once(tmp_path: Path) -> None:
    drafter = drafter_of(verifier())
    path = save(tmp_path, drafter)
    with mock.patch.object(torch, "load", wraps=torch.load) as load:
        loaded = load_drafter(path, task())
    assert load.call_count == 1
    assert not loaded.model.training
    for name, value in drafter.state_dict().items():
        assert torch.equal(loaded.model.state_dict()[name], value), name
    assert (loaded.block_size(0), loaded.block_size(4)) == (6, 4)
    with refused_with(r"--block-size 7: .*drafter\.pt was trained for blocks of 6"):
        loaded.block_size(7)


def test_a_checkpoint_says_how_much_is_drafted(tmp_path: Path) -> None:
    """Where decoding does not; both more and less can be asked for."""
    path = save(tmp_path, drafter_of(verifier()))
    keep_draft_length(Path(path), 3)
    loaded = load_drafter(path, task())
    assert [loaded.block_size(wanted) for wanted in (0, 1, 6)] == [3, 1, 6]
    for wrong in (0, 7):
        with refused_with("was trained for blocks of 6: give 1 to 6"):
            keep_draft_length(Path(path), wrong)
    assert load_drafter(path, task()).block_size(0) == 3


def test_it_cannot_work_alone_without_them(tmp_path: Path) -> None:
    """As --path, where fairseq itself loads it."""
    model = verifier()
    path = save(tmp_path, drafter_of(model), without=model)
    with refused_with(
        r"exported without .* give the verifier as --path and .* as --drafter-path"
    ):
        checkpoint_utils.load_model_ensemble([path], task=task())
    [whole], _ = checkpoint_utils.load_model_ensemble(
        [save(tmp_path, drafter_of(model))], task=task()
    )
    assert only_drafter([whole], path) is whole


def test_other_dictionaries_are_refused(tmp_path: Path) -> None:
    drafter = drafter_of(verifier())
    swapped = list(WORDS.symbols)
    swapped[6:8] = "w3", "w2"
    path = save(tmp_path, drafter, source_symbols=WORDS.symbols, target_symbols=swapped)
    with refused_with(
        r"target dictionary \(recorded .*\) .*: symbol 6 is 'w3' there and 'w2' here"
    ):
        load_drafter(path, task())
    path = save(tmp_path, drafter)  # no record: sizes alone
    with refused_with(
        r"made for a source dictionary of 24 symbols, and that of .* has 25"
    ):
        load_drafter(path, task(dictionary(21)))
    # as in the file of a task that adds the names of languages
    fewer = WORDS.symbols[:-2]
    assert load_drafter(
        save(tmp_path, drafter, source_symbols=fewer, target_symbols=fewer), task()
    )


def test_the_encoder_that_reads_the_source() -> None:
    """The verifier's where it is the same, whichever it is of an ensemble; else the drafter's own."""
    same = verifier(1)
    other = verifier(3)
    outputs = {
        model: model.encoder.forward_torchscript(SOURCE) for model in (same, other)
    }
    loaded = LoadedDrafter(drafter_of(same))

    def draft(*verifiers: Any) -> torch.Tensor:
        engine = loaded.start(
            SOURCE, torch.float32, verifiers, [outputs[model] for model in verifiers]
        )
        return engine._scores([[WORDS.eos()]], 6)

    with mock.patch.object(loaded, "_encode", wraps=loaded._encode) as encode:
        expected = draft()
        assert encode.call_count == 1
        for verifiers, encodings in (((same,), 1), ((other, same), 1), ((other,), 2)):
            torch.testing.assert_close(
                draft(*verifiers), expected, atol=1e-5, rtol=1e-5
            )
            assert encode.call_count == encodings


def test_a_drafter_that_is_converted_within_a_batch_gets_another_engine() -> None:
    """Its weights were looked at before they were converted to the verifier's type."""
    loaded = LoadedDrafter(drafter_of(verifier(1)))
    for kind in (torch.float32, torch.float64, torch.float32):
        with loaded.batch():
            assert loaded.start(SOURCE, kind)._scores([[WORDS.eos()]], 6).dtype == kind
