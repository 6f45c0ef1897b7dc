"""CTranslate2 in a process of its own.

In one process with PyTorch, its threads join PyTorch's OpenMP library. That library then has more threads than
processors, no longer waits actively, and slows every mode (docs/tried.md).
"""

import logging
import multiprocessing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError

_COMPUTE_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8"}


class TranslatorProcess:
    """A converted model, loaded by a process that translates one batch after another."""

    def __init__(self, converted: Path, precision: str, device: str, threads: int) -> None:
        """
        Args:
            converted: folder from `ctranslate2_runner.convert`.
            precision: a key of `_COMPUTE_TYPES`.
            device: `cpu` or `cuda`.
            threads: of one batch.

        Raises:
            AggdecError: CTranslate2 cannot compute in that precision on that device.
        """
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        options = {"device": device, "compute_type": _COMPUTE_TYPES[precision], "intra_threads": threads}
        self._process = context.Process(target=_serve, args=(other, str(converted), options), daemon=True)
        self._process.start()
        other.close()  # so that the end of the process ends our side, too
        self._name = f"ctranslate2 in {precision} on {device}"
        error = self._receive()
        if error is not None:
            self.close()
            raise AggdecError(f"{self._name}: {error}")

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    def translate(self, texts: Sequence[Sequence[str]], options: Mapping[str, Any]) -> list[list[str]]:
        """The best hypothesis of each text, as symbols.

        Args:
            texts: symbols, without EOS.
            options: arguments of CTranslate2's `translate_batch`.

        Raises:
            AggdecError: the process has ended, most likely killed for want of memory.
        """
        with suppress(ConnectionError):  # `_receive` says why
            self._connection.send((texts, options))
        return self._receive()

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            raise AggdecError(
                f"{self._name}: its process ended with status {self._process.exitcode}; if it was killed, free some "
                "memory, or leave --peers out"
            ) from None


def _serve(connection: Connection, converted: str, options: Mapping[str, Any]) -> None:
    """What the process does: load the model, say None or why it could not, and translate until the pipe is closed."""
    import ctranslate2

    ctranslate2.set_log_level(logging.ERROR)
    try:
        translator = ctranslate2.Translator(converted, inter_threads=1, **options)
    except (ValueError, RuntimeError) as error:
        connection.send(str(error))
        return
    connection.send(None)
    with suppress(EOFError, KeyboardInterrupt):  # the other side has closed the pipe, or the command was interrupted
        while True:
            texts, how = connection.recv()
            connection.send([result.hypotheses[0] for result in translator.translate_batch(texts, **how)])
