"""Decoding takes no more memory after some thousand sentences than after some hundred."""

import ctypes
import gc
import random
import sys
import weakref
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import LanguagePairDataset
from fairseq_cli.interactive import make_batches
from omegaconf import OmegaConf

from fairseq_aggdec.decoding.tokens import Ragged
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.stats_file import StatsFile
from fairseq_aggdec.tasks.aggressive_translation import (
    AggressiveTranslationConfig,
    AggressiveTranslationTask,
)
from tests.support.random_models import (
    dictionary,
    random_batch,
    random_drafter,
    random_model,
    share_encoder,
)
from tests.support.small_generators import generator

WORDS = dictionary(40)
SENTENCES = 2_500
BATCH = 20
mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)  # of glibc 2.33 and later


def allocated_bytes() -> int:
    """In use of the C library's memory (see mallinfo(3)); that of the process also holds what is free, in pieces."""
    assert mallinfo is not None
    fields = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    mallinfo.restype = type(
        "Mallinfo",
        (ctypes.Structure,),
        {"_fields_": [(name, ctypes.c_size_t) for name in fields]},
    )
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)


@pytest.mark.skipif(mallinfo is None, reason="needs glibc's mallinfo2")
@pytest.mark.parametrize("decoding", ["iad", "gad"])
def test_no_growth_from_sentence_to_sentence(decoding: str, tmp_path: Path) -> None:
    """Neither Python's objects nor the memory in use."""
    model = random_model(1, WORDS, eos_share=0.1)
    drafter = random_drafter("causal, post-norm sinusoidal", 1, WORDS, 5)
    share_encoder(drafter, model)
    block = BlockDraftOptions(LoadedDrafter(drafter), 5)
    ours = generator(
        [model],
        decoding,
        WORDS,
        block_draft=block if decoding == "gad" else None,
        max_len_b=6,
        stats_file=StatsFile(str(tmp_path / "stats.jsonl")),
    )
    rng = random.Random(1)

    def decode(sentences: int) -> None:
        for number in range(0, sentences, BATCH):
            # a single sentence takes other paths
            size = 1 if number % (10 * BATCH) == 0 else BATCH
            lengths = [rng.randint(1, 8) for _ in range(size)]
            batch = random_batch(rng.randrange(100_000), WORDS, lengths, size > 1)
            ours.generate([model], batch)

    def used() -> tuple[int, int]:
        gc.collect()
        return sys.getallocatedblocks(), allocated_bytes()

    decode(SENTENCES)  # caches fill up: libraries keep something for every shape
    for width in range(1, 300):  # and so do we, for the last few hundred
        Ragged.full(1, width, torch.device("cpu"))
    growth = []
    before = used()
    # a leak grows in every round, a cache that was not yet full in the first
    for _ in range(3):
        decode(SENTENCES)
        after = used()
        growth.append((after[0] - before[0], after[1] - before[1]))
        before = after
        if growth[-1][0] < SENTENCES / 10 and growth[-1][1] < 100 * SENTENCES:
            return
    pytest.fail(
        f"objects or bytes stay behind in each round of {SENTENCES:,} sentences: {growth}"
    )


@pytest.mark.skipif(mallinfo is None, reason="needs glibc's mallinfo2")
def test_models_that_a_program_forgets_leave_nothing_behind() -> None:
    """Neither the task, the models and what decoded with them, nor memory for one of ten."""
    kept: list[weakref.ref[Any]] = []
    used = []
    for number in range(10):
        model = random_model(
            number,
            WORDS,
            0.1,
            encoder_ffn_embed_dim=8_000,
            decoder_ffn_embed_dim=8_000,
        )
        task = AggressiveTranslationTask(
            AggressiveTranslationConfig(decoding="iad"), WORDS, WORDS
        )
        ours = task.build_generator([model], Namespace())
        task.inference_step(ours, [model], random_batch(number, WORDS, [3, 5]))
        engine = ours._engines.decoder(model.decoder)
        size = sum(weight.nbytes for weight in model.parameters())
        kept += map(weakref.ref, (task, model, ours, engine))
        del task, model, ours, engine
        gc.collect()
        used.append(allocated_bytes())
    assert not any(reference() for reference in kept)
    assert used[-1] - used[3] < size


def test_fairseq_interactive_forgets_a_buffer_once_it_is_answered() -> None:
    """fairseq's own task keeps the data of each: 4 kB a line with the usual buffer of one line."""
    task = AggressiveTranslationTask(
        AggressiveTranslationConfig(decoding="iad"), WORDS, WORDS
    )
    dataset = {
        "max_tokens": None,
        "batch_size": 1,
        "skip_invalid_size_inputs_valid_test": False,
    }
    options = OmegaConf.create(
        {"generation": {"constraints": None}, "dataset": dataset}
    )
    for _ in range(50):
        assert (
            len(
                list(
                    make_batches(
                        [WORDS[5], WORDS[6]], options, task, (64, 64), lambda line: line
                    )
                )
            )
            == 2
        )
    gc.collect()
    kept = [
        item
        for item in gc.get_objects()
        if type(item) is LanguagePairDataset and item.src_dict is WORDS
    ]
    assert len(kept) <= 1
