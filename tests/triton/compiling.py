"""Compiles all kernels of the GPU engine, without a GPU: `python -m tests.triton.compiling`.

The package's functions are called with tensors on the CPU, and what they would launch is compiled with the same
arguments and options. Triton's version is printed, and for each kernel one line: its name, the architecture, the type,
when the next one may start, the bytes of a thread's stack (where there are any, its registers did not suffice), and
those of a program's shared memory.
"""

import inspect
import re
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
import triton
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

import fairseq_aggdec
from fairseq_aggdec.decoding.beam.search import BeamOptions
from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.input_guided import (
    SourceCopyDrafter,
    SourceMatcher,
)
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.roles import VERIFY_ALL
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.verification import EXACT
from fairseq_aggdec.engine.cuda import choice, kernels, launching
from fairseq_aggdec.engine.cuda.choice import best_entries, chosen, embedded, projected
from fairseq_aggdec.engine.cuda.layers import TritonDecoderLayers
from fairseq_aggdec.engine.graphs.passes import Shape
from fairseq_aggdec.engine.loops.beams import BeamLoop
from fairseq_aggdec.engine.loops.loop import Plan
from fairseq_aggdec.engine.loops.rows import RowLoop, RowSearch
from fairseq_aggdec.engine.loops.state import new_buffer, parts_of
from fairseq_aggdec.models.hub_t5 import DistanceBias, Layer

fairseq_aggdec.register()

Size = tuple[int, int, int, str]
"""numbers of a token, inside the feed-forward part, heads, and the activation"""
BASE = (512, 2048, 8, "relu")
UNEVEN = (768, 3072, 6, "swish")
LARGE = (1024, 4096, 16, "gelu")
FLAN_T5_SMALL = (512, 1024, 6, "T5")
T5 = Namespace(
    encoder_embed_dim=512,
    encoder_ffn_embed_dim=1024,
    encoder_attention_heads=6,
    head_dim=64,
    is_gated=True,
    distance_buckets=32,
    longest_distance=128,
    norm_eps=1e-6,
)


class AbsentGPU:
    """What Triton asks a device before it compiles for it."""

    def __init__(self, architecture: int) -> None:
        self._target = GPUTarget("cuda", architecture, 32)

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        # a number of its own: Triton keeps what it has compiled by device
        return self._target.arch

    def get_current_stream(self, device: int) -> int:
        return 0


def compile_all(architecture: int, dtype: torch.dtype, sizes: Sequence[Size]) -> None:
    """Compile, and print a line for each kernel."""

    def compile_only(
        self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any
    ) -> None:
        kernel = run(self, *arguments, grid=grid, warmup=True, **options)
        if kernel.hash not in seen:
            seen.add(kernel.hash)
            assert not unguarded(self.fn, kernel.asm["ptx"])
            sizes = stack_of(kernel), kernel.metadata.shared
            print(
                kernel.name, f"sm_{architecture}", dtype, start_behind(kernel), *sizes
            )

    run = JITFunction.run
    seen = set[str]()
    capability = launching.capability
    driver.set_active(AbsentGPU(architecture))
    try:
        JITFunction.run = compile_only
        launching.capability = lambda device: (architecture // 10, architecture % 10)
        for size in sizes:
            launch_layers(dtype, size)
            launch_around(dtype, size[0])
        launch_choice(dtype)
        if architecture >= 90:
            launch_loops()
    finally:
        JITFunction.run = run
        launching.capability = capability


def launch_choice(dtype: torch.dtype) -> None:
    """For the vocabularies of small and of the largest models."""
    numbers = torch.zeros(5, dtype=torch.long)
    for symbols, count in ((32_768, 7), (260_000, 22)):
        logits = torch.zeros(5, symbols, dtype=dtype)
        best_entries(logits, numbers, numbers, count)
        for proposed in (numbers, None):
            chosen(logits, numbers, numbers, proposed)


def launch_loops() -> None:
    """Without drafts, with long copies and with a model's drafts; of the usual beam and of a large one."""
    parts = SimpleNamespace(
        project=lambda features: features.new_zeros(len(features), 999)
    )
    passes = SimpleNamespace(device=torch.device("cpu"), parts=parts, kernels=choice)
    passes.features = lambda tokens, *_, **__: torch.zeros(*tokens.shape, 1)
    passes.chosen = lambda features, *_, **__: torch.zeros(2, len(features))
    chooser = SimpleNamespace(temperature=1.0)
    engine: Any = SimpleNamespace(passes=passes, chooser=lambda rules: chooser)
    engine.memory = SimpleNamespace(cache=SimpleNamespace(source=32))
    rules = SearchRules(pad=1, unk=3, eos=2, max_len=60)
    copier = SourceCopyDrafter([SourceMatcher([5] * 90, 2)])
    model = BlockDrafter(SimpleNamespace(max_positions=99), 10, 2)
    searches = [
        RowSearch(drafter, EXACT, VERIFY_ALL, False)
        for drafter in (NoDrafter(), copier, model)
    ]
    loops: list[Any] = [RowLoop(engine, rules, search) for search in searches]
    for loop in [
        *loops,
        *(BeamLoop(engine, rules, BeamOptions(size, 2, 60, 999)) for size in (5, 16)),
    ]:
        table = loop.table(2, 64)
        state = parts_of(new_buffer(table), table)
        loop.turn(state, Plan(Shape(2, 1, 64, 32)))(torch.zeros(4, dtype=torch.long))


def launch_around(dtype: torch.dtype, dim: int) -> None:
    """The embedding and the projection to the vocabulary."""
    numbers = torch.zeros(5, dtype=torch.long)
    features = torch.zeros(5, dim, dtype=dtype)
    weight = torch.zeros(1000, dim, dtype=dtype)
    embedded(numbers, numbers, weight, 1.0, weight, weight)
    for bias in (None, weight[:, 0].contiguous()):
        projected(features, weight, bias)


def launch_layers(dtype: torch.dtype, size: Size) -> None:
    """Of two layers, since the first one's input is already normalised."""
    same = layer(*size).to(dtype)
    attention = same.self_attn
    dim = size[0]
    stack = SimpleNamespace(layers=[same, same], layer_norm=None)
    if size is FLAN_T5_SMALL:
        stack.layer_norm = same.final_layer_norm
        stack.distance_bias = DistanceBias(T5, is_causal=True).to(dtype)
    decoder = TritonDecoderLayers(stack)
    read(decoder, attention, torch.zeros(1, 3, dim, dtype=dtype))
    read(decoder, attention, torch.zeros(1, 9, dim, dtype=dtype))
    compiled = how_many()
    read(
        decoder,
        attention,
        torch.zeros(16, 16, dim, dtype=dtype),
        capacity=65,
        source=17,
        offset=1,
    )
    # other sizes and addresses need no other machine code
    assert how_many() == compiled
    if size in (LARGE, FLAN_T5_SMALL):
        read(
            decoder,
            attention,
            torch.zeros(1, 3, dim, dtype=dtype),
            torch.zeros(1, 3, 5, dtype=torch.long),
        )


@cache
def layer(dim: int, inner: int, heads: int, activation: str) -> Any:
    if activation == "T5":
        return Layer(T5, reads_encoder=True)
    config = TransformerConfig(activation_fn=activation)
    for side in (config.encoder, config.decoder):
        side.embed_dim = dim
        side.ffn_embed_dim = inner
        side.attention_heads = heads
    return TransformerDecoderLayerBase(config)


def read(
    decoder: Any,
    attention: Any,
    x: Tensor,
    paths: Any = None,
    capacity: int = 64,
    source: int = 64,
    offset: int = 0,
) -> None:
    """Read a block whose numbers are a part of a buffer, from `offset` on."""
    rows = len(x)
    sizes = attention.num_heads, 2 * attention.head_dim
    memory, cross = (
        x.new_zeros(2, rows, sizes[0], length, sizes[1])
        for length in (capacity, source)
    )
    positions = (
        torch.zeros(rows + offset, 1, dtype=torch.long)[offset:]
        if paths is None
        else paths[..., 0]
    )
    decoder.layered(
        x,
        memory,
        positions,
        (cross, torch.zeros(rows, source, dtype=torch.bool)),
        paths=paths,
    )


def start_behind(kernel: Any) -> str:
    """When the next kernel may start: after this one's wait, or at its end."""
    found = re.findall(r"griddepcontrol\.(\w+)", kernel.asm["ptx"])
    return {"wait launch_dependents": "after-its-wait", "": "at-its-end"}[
        " ".join(found)
    ]


def unguarded(kernel: Callable[..., None], code: str) -> list[str]:
    """What is read and then written, or written and then read, without a barrier between them in the machine code.

    From top to bottom: the pieces that a loop brings overlap nowhere. Other kernels read nothing that they write.
    """
    source, first = inspect.getsourcelines(kernel)
    found = list[str]()
    line = 0
    column = 0
    accesses: dict[str, str] = {}  # how each name was used since the last barrier
    for instruction in code.splitlines() if "debug_barrier" in "".join(source) else ():
        # in the kernel, of what is called there
        for place in re.findall(r"\.py:(\d+):(\d+)", instruction)[-1:]:
            line, column = map(int, place)
        if "bar.sync" in instruction:
            accesses.clear()
        elif access := re.search(r"(ld|st)\.global", instruction):
            how = {"ld": "load", "st": "store"}[access[1]]
            offset = len("".join(source[: line - first])) + column
            calls = re.finditer(rf"tl\.{how}\(\s*(\w+)", "".join(source))
            name = [call[1] for call in calls if call.start() < offset][-1]
            if accesses.setdefault(name, how) != how:
                found.append(name)
    return found


def stack_of(kernel: Any) -> int:
    """The bytes of a thread's stack."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        used = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout
    (found,) = re.findall(r"STACK:(\d+)", used)
    return int(found)


def how_many() -> int:
    """The number of kernels that are compiled."""
    found = (kernels.product, kernels.projections, kernels.attention, kernels.norm)
    return sum(
        len(caches[0]) for kernel in found for caches in kernel.device_caches.values()
    )


if __name__ == "__main__":
    print(triton.__version__)
    compile_all(80, torch.bfloat16, (UNEVEN,))
    # a kernel starts there while the one before it still runs
    compile_all(90, torch.float16, (BASE, LARGE, FLAN_T5_SMALL))
