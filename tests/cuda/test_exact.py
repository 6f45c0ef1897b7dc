"""--bit-exact on the device: a token has the same bits in every pass, in layers of the papers' sizes.

On a GPU in half precision by Triton's kernels; the rehearsal on a CPU has single precision and the kernels in C. Whole
outputs, in every mode and batch, are compared by `aggdec verify --precisions exact` (scripts/gpu_day.sh).
"""

from argparse import Namespace
from dataclasses import replace
from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerModel, base_architecture

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block
from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.lab.bench.random_models import vary_outputs
from fairseq_aggdec.models.sizes import SIZES
from tests.support.on_device import on
from tests.support.random_models import dictionary, random_batch, task_of

WORDS = dictionary(8_000)
LENGTH = 6
ROWS = [*range(1, 34), 64, 129]
"""passes of these numbers of tokens, and of multiples: a library's products change their kernels on the way"""
OF_TWO_LAYERS = {
    name: replace(size, encoder_layers=2, decoder_layers=2)
    for name, size in {
        **SIZES,
        "big, pre-norm": replace(SIZES["big"], pre_norm=True),
    }.items()
}
RULES = SearchRules(
    WORDS.pad(), WORDS.unk(), WORDS.eos(), max_len=40, symbols=len(WORDS), min_len=3
)


def random_model(size: str) -> Any:
    args = Namespace(
        arch="transformer",
        **{**OF_TWO_LAYERS[size].options(), "share_all_embeddings": True},
    )
    base_architecture(args)
    torch.manual_seed(1)
    model = TransformerModel.build_model(args, task_of(WORDS))
    vary_outputs(model)
    return model.eval()


def exact_types(device: torch.device, size: str) -> list[torch.dtype]:
    if device.type == "cpu":
        return [torch.float32]
    # kernels are compiled for each type
    return [torch.float16, torch.bfloat16] if size == "base" else [torch.float16]


def sample_of(rows: list[int], device: torch.device) -> dict[str, Any]:
    """Some of `max(ROWS)` sentences of different lengths."""
    source = random_batch(5, WORDS, [1 + 7 * row % 70 for row in range(max(ROWS))])[
        "net_input"
    ]
    longest = int(source["src_lengths"][rows].max())
    chosen = {
        "src_tokens": source["src_tokens"][rows, -longest:],
        "src_lengths": source["src_lengths"][rows],
    }
    return {
        "id": torch.tensor(rows),
        "net_input": {name: value.to(device) for name, value in chosen.items()},
    }


def bits(
    engines: Engines,
    model: Any,
    rows: list[int],
    widths: list[int],
    device: torch.device,
) -> torch.Tensor:
    """What the engine says of these sentences' tokens, read in blocks of these widths: 2 x B x LENGTH numbers."""
    verifier: Any = engines.decoder(model.decoder)
    verifier.start(engines.encode(model, sample_of(rows, device)["net_input"]))
    texts = torch.randint(
        4, len(WORDS), (max(ROWS), LENGTH), generator=torch.Generator().manual_seed(2)
    )[rows]
    found = []
    start = 0
    for width in widths:
        read = texts[:, start : start + width]
        block = Block.of_draft(
            read[:, 0].tolist(),
            [start] * len(rows),
            read[:, 1:].to(device),
            None,
            device,
        )
        said = verifier.verify(block, RULES)
        found.append(
            torch.stack([said.tokens.double(), said.log_probs.double()])
            .cpu()
            .view(2, len(rows), width)
        )
        start += width
    return torch.cat(found, dim=2)


@pytest.mark.parametrize("size", ["base", "big, pre-norm", "bart-large"])
def test_every_pass_has_the_bits_of_one_token_alone(
    size: str, device: torch.device
) -> None:
    for kind in exact_types(device, size):
        model = on(device, random_model(size), kind)
        engines = Engines(Arithmetic(bit_exact=True))
        with torch.no_grad():
            alone = torch.cat(
                [
                    bits(engines, model, [row], [1] * LENGTH, device)
                    for row in range(max(ROWS))
                ],
                dim=1,
            )
            for rows in ROWS:
                for widths in ([1] * LENGTH, [1, 4, 1], [LENGTH]):
                    found = bits(engines, model, list(range(rows)), widths, device)
                    assert torch.equal(found, alone[:, :rows]), (
                        size,
                        kind,
                        rows,
                        widths,
                    )
