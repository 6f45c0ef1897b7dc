"""Compiles the kernels of all `*_kernels.py` beside this file, without a GPU: `python -m tests.triton.compiling`.

One line for each kernel, architecture and type is printed, its last word the bytes of shared memory.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ARCHITECTURES = (80, 90)
TYPES = ("fp16", "bf16")


class Build(NamedTuple):
    """A kernel and the arguments that it is compiled for."""

    kernel: Any
    types: dict[str, Any]
    """of the arguments, in Triton's notation: `*x` is a pointer to the model's type, "none" stands for None"""
    constants: dict[str, Any]
    """the other arguments, without `pdl`"""
    warps: int = 4
    stages: int = 3

    def shared_memory(self, architecture: int, dtype: str) -> int:
        """Compile, and return the bytes of shared memory of one program."""
        signature: dict[str, Any] = {}
        constants: dict[tuple[int, ...], Any] = {}
        attributes: dict[tuple[int, ...], Any] = {}

        def describe(place: tuple[int, ...], kind: Any) -> Any:
            if isinstance(kind, tuple):
                return tuple(describe((*place, number), part) for number, part in enumerate(kind))
            if kind == "none":
                constants[place] = None
                return "constexpr"
            if kind.startswith("*"):
                attributes[place] = [["tt.divisibility", 16]]  # as PyTorch aligns its memory
            return f"*{dtype}" if kind == "*x" else kind

        given = {**self.constants, "pdl": architecture >= 90}
        for number, parameter in enumerate(self.kernel.params):
            if parameter.name in given:
                constants[(number,)], signature[parameter.name] = given[parameter.name], "constexpr"
            else:
                signature[parameter.name] = describe((number,), self.types[parameter.name])
        source = ASTSource(self.kernel, signature, constants, attributes)
        target = GPUTarget("cuda", architecture, 32)
        options = {"num_warps": self.warps, "num_stages": self.stages}
        return int(triton.compile(source, target=target, options=options).metadata.shared)


def main() -> None:
    for path in sorted(Path(__file__).parent.glob("*_kernels.py")):
        for build in import_module(f"tests.triton.{path.stem}").BUILDS:
            for architecture in ARCHITECTURES:
                for dtype in TYPES:
                    size = build.shared_memory(architecture, dtype)
                    print(build.kernel.__name__, build.constants, f"sm_{architecture}", dtype, size)


if __name__ == "__main__":
    main()
