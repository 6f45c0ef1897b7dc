"""--bit-exact on the device: a token has the same bits in every pass, in layers of the papers' sizes.

On a GPU in half precision by Triton's kernels; the rehearsal on a CPU has single precision and the kernels in C.
"""

from argparse import Namespace
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerModel, base_architecture

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block
from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.lab.bench.random_models import vary_outputs
from fairseq_aggdec.models.sizes import SIZES
from tests.support.on_device import on
from tests.support.oracle import OracleGenerator
from tests.support.random_models import dictionary, random_batch, random_drafter

WORDS = dictionary(8_000)
LENGTH = 6
ROWS = [*range(1, 34), 64, 129]
"""passes of these numbers of tokens, and of multiples: a library's products change their kernels on the way"""
OF_TWO_LAYERS = {
    name: replace(size, encoder_layers=2, decoder_layers=2)
    for name, size in {**SIZES, "big, pre-norm": replace(SIZES["big"], pre_norm=True)}.items()
}
RULES = SearchRules(WORDS.pad(), WORDS.unk(), WORDS.eos(), max_len=40, symbols=len(WORDS), min_len=3)
LIMIT: dict[str, Any] = {"max_len_b": 70}  # more than one bucket of positions


def random_model(size: str) -> Any:
    args = Namespace(arch="transformer", **{**OF_TWO_LAYERS[size].options(), "share_all_embeddings": True})
    base_architecture(args)
    torch.manual_seed(1)
    model = TransformerModel.build_model(args, SimpleNamespace(source_dictionary=WORDS, target_dictionary=WORDS))
    vary_outputs(model)
    return model.eval()


def exact_types(device: torch.device, size: str) -> list[torch.dtype]:
    if device.type == "cpu":
        return [torch.float32]
    return [torch.float16, torch.bfloat16] if size == "base" else [torch.float16]  # kernels are compiled for each type


def sample_of(rows: list[int], device: torch.device) -> dict[str, Any]:
    """Some of `max(ROWS)` sentences of different lengths."""
    source = random_batch(5, WORDS, [1 + 7 * row % 70 for row in range(max(ROWS))])["net_input"]
    longest = int(source["src_lengths"][rows].max())
    chosen = {"src_tokens": source["src_tokens"][rows, -longest:], "src_lengths": source["src_lengths"][rows]}
    return {"id": torch.tensor(rows), "net_input": {name: value.to(device) for name, value in chosen.items()}}


def bits(engines: Engines, model: Any, rows: list[int], widths: list[int], device: torch.device) -> torch.Tensor:
    """What the engine says of these sentences' tokens, read in blocks of these widths: 2 x B x LENGTH numbers."""
    verifier: Any = engines.decoder(model.decoder)
    verifier.start(engines.encode(model, sample_of(rows, device)["net_input"]))
    texts = torch.randint(4, len(WORDS), (max(ROWS), LENGTH), generator=torch.Generator().manual_seed(2))[rows]
    found, start = [], 0
    for width in widths:
        read = texts[:, start : start + width]
        block = Block.of_draft(read[:, 0].tolist(), [start] * len(rows), read[:, 1:].to(device), None, device)
        said = verifier.verify(block, RULES)
        found.append(torch.stack([said.tokens.double(), said.log_probs.double()]).cpu().view(2, len(rows), width))
        start += width
    return torch.cat(found, dim=2)


@pytest.mark.parametrize("size", ["base", "big, pre-norm", "bart-large"])
def test_every_pass_has_the_bits_of_one_token_alone(size: str, device: torch.device) -> None:
    for kind in exact_types(device, size):
        model = on(device, random_model(size), kind)
        engines = Engines(Arithmetic(bit_exact=True))
        with torch.no_grad():
            alone = torch.cat([bits(engines, model, [row], [1] * LENGTH, device) for row in range(max(ROWS))], dim=1)
            for rows in ROWS:
                for widths in ([1] * LENGTH, [1, 4, 1], [LENGTH]):
                    found = bits(engines, model, list(range(rows)), widths, device)
                    assert torch.equal(found, alone[:, :rows]), (size, kind, rows, widths)


def test_every_mode_and_batch_has_the_bits_of_greedy_on_each_sentence_alone(device: torch.device) -> None:
    model, sizes = on(device, random_model("base"), exact_types(device, "base")[0]), OF_TWO_LAYERS["base"].options()
    drafter = LoadedDrafter(random_drafter("causal, post-norm sinusoidal", 1, WORDS, WORDS, 6, **sizes))
    engines = Engines(Arithmetic(bit_exact=True))
    common: dict[str, Any] = {"src_dict": WORDS, "engines": engines, "drafts": "whole", **LIMIT}
    greedy = AggressiveGenerator.of([model], WORDS, decoding="greedy", src_dict=WORDS, engines=engines, **LIMIT)

    def outputs(generator: Any, rows: list[int]) -> list[tuple[list[int], list[float]]]:
        found = generator.generate([model], sample_of(rows, device))
        return [(one["tokens"].tolist(), one["positional_scores"].tolist()) for (one,) in found]

    alone = [outputs(greedy, [row])[0] for row in range(24)]
    for rows in (list(range(24)), list(range(23, -1, -3)), [7, 2]):
        knows: dict[str, Any] = {"answers": {row: alone[row][0] for row in rows}, "seed": 9, "longest": 10}
        for generator in (
            greedy,
            AggressiveGenerator.of([model], WORDS, decoding="iad", **common),
            AggressiveGenerator.of([model], WORDS, decoding="gad", block_draft=BlockDraftOptions(drafter, 6), **common),
            OracleGenerator.of([model], WORDS, decoding="iad", **knows, **common),
        ):
            assert outputs(generator, rows) == [alone[row] for row in rows], (generator.decoding, rows)
        assert generator.totals.accepted > 0
