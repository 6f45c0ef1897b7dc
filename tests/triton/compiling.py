"""Compiles all kernels that the files `launch_*.py` launch, without a GPU: `python -m tests.triton.compiling`.

Their function `launch` calls the package's functions with tensors of a type on the CPU, and what these would launch is
compiled with the same arguments and options. For each kernel one line is printed: its name, the architecture, the type,
and the bytes of shared memory of a program.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from fairseq_aggdec.engine.cuda import launching


class AbsentGPU:
    """What Triton asks a device before it compiles for it."""

    def __init__(self, architecture: int) -> None:
        self._target = GPUTarget("cuda", architecture, 32)

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return self._target.arch  # a number of its own: Triton keeps what it has compiled by device

    def get_current_stream(self, device: int) -> int:
        return 0


def compile_all(architecture: int, dtype: torch.dtype) -> None:
    """Compile, and print a line for each kernel."""

    def compile_only(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> None:
        kernel = run(self, *arguments, grid=grid, warmup=True, **options)
        print(kernel.name, f"sm_{architecture}", dtype, kernel.metadata.shared)

    run = JITFunction.run
    capability = launching.capability
    driver.set_active(AbsentGPU(architecture))
    try:
        JITFunction.run = compile_only
        launching.capability = lambda device: (architecture // 10, architecture % 10)
        for path in sorted(Path(__file__).parent.glob("launch_*.py")):
            import_module(f"tests.triton.{path.stem}").launch(dtype)
    finally:
        JITFunction.run, launching.capability = run, capability


if __name__ == "__main__":
    compile_all(80, torch.float16)
    compile_all(90, torch.bfloat16)
