"""Tests of `fairseq_aggdec.lab.benchmarking.random_models`."""

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq.models.transformer import base_architecture

from fairseq_aggdec import register
from fairseq_aggdec.generation.drafter_checkpoint import load_drafter
from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.random_models import SIZES, RandomModel, Size, random_sentences, write_random_model
from fairseq_aggdec.lab.benchmarking.rounds import compare
from fairseq_aggdec.lab.benchmarking.subject import Runners
from fairseq_aggdec.models.warm_start import encoder_fingerprint
from fairseq_aggdec.tasks.loading import load
from tests.lab.benchmarking.tiny import TINY_BART, VOCABULARY, tiny_model, tiny_subject


@pytest.mark.parametrize(
    ("name", "layers", "width"),
    [("base", (6, 6), 512), ("big", (6, 6), 1024), ("big-9-3", (9, 3), 1024), ("bart-12-2", (12, 2), 1024)],
)
def test_sizes_are_those_of_the_papers(name: str, layers: tuple[int, int], width: int) -> None:
    args = Namespace(**SIZES[name].options())
    base_architecture(args)
    assert (args.encoder_layers, args.decoder_layers) == layers
    assert args.encoder_embed_dim == args.decoder_embed_dim == width
    assert args.encoder_ffn_embed_dim == args.decoder_ffn_embed_dim == 4 * width
    assert args.decoder_attention_heads * 64 == width
    assert args.layernorm_embedding == (name == "bart-12-2")


def test_model_and_drafter_load_and_share_an_encoder(tiny: RandomModel) -> None:
    task, (model,) = load(str(tiny.checkpoint), str(tiny.folder), "src", "tgt")
    assert len(task.target_dictionary) == VOCABULARY
    drafter = load_drafter(str(tiny.drafter), task, [model])
    assert torch.equal(drafter.model.encoder_fingerprint, encoder_fingerprint(model.encoder))
    assert drafter.block_size(0) == 8
    assert len(drafter.model.decoder.layers) == 1


def test_the_same_model_is_made_again_and_taken_where_it_is(tiny: RandomModel, tmp_path: Path) -> None:
    again = tiny_model(tmp_path)
    _, (first,) = load(str(tiny.checkpoint), str(tiny.folder), "src", "tgt")
    _, (second,) = load(str(again.checkpoint), str(tmp_path), "src", "tgt")
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    written = again.checkpoint.stat().st_mtime_ns
    tiny_model(tmp_path)
    assert again.checkpoint.stat().st_mtime_ns == written


def test_a_model_like_bart_loads(tmp_path: Path) -> None:
    register()
    model = tiny_model(tmp_path, TINY_BART, drafter_layers=0)
    assert model.drafter is None
    _, (loaded,) = load(str(model.checkpoint), str(tmp_path), "src", "tgt")
    assert loaded.encoder.layernorm_embedding is not None
    assert (len(loaded.encoder.layers), len(loaded.decoder.layers)) == (3, 1)


def test_outputs_are_varied_enough_to_be_copied_from(tmp_path: Path) -> None:
    register()
    size, words = Size(width=128, inner=512, heads=2, encoder_layers=2, decoder_layers=2), 8000
    model = write_random_model(tmp_path, size, vocabulary=words)
    subject = tiny_subject(model, sentences=random_sentences(4, 20, words), oracle=None)
    with Runners(subject) as runners:
        (result,) = compare([runners.make(Mode.parse("greedy"), 1)], repeats=1, progress=False)
    for output in result.outputs.values():
        assert len(set(output.tokens)) > 0.5 * len(output.tokens)


def test_sentences_are_ordinary_symbols_and_eos() -> None:
    sentences = random_sentences(3, 7, VOCABULARY)
    assert sentences == random_sentences(3, 7, VOCABULARY)
    assert all(len(sentence) == 8 and sentence[-1] == 2 for sentence in sentences)
    assert all(4 <= token < VOCABULARY for sentence in sentences for token in sentence[:-1])
