"""Runs CTranslate2 on the same checkpoint (by its converter for fairseq), the same sentences and length limits.

It runs in another process. In one process with PyTorch, its threads join PyTorch's OpenMP library. That library then
has more threads than processors, no longer waits actively, and slows every mode (docs/tried.md).
"""

import logging
import multiprocessing
from argparse import Namespace
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary

from fairseq_aggdec.compat.allowed_classes import allowed_globals
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.rounds import Output
from fairseq_aggdec.process import shorten_waits

_COMPUTE_TYPES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8": "int8",
}


def _serve(pipe: Connection, converted: str, options: Mapping[str, Any]) -> None:
    """Load a converted model and translate the batches that come through the pipe; runs in another process."""
    import ctranslate2

    ctranslate2.set_log_level(logging.ERROR)
    try:
        translator = ctranslate2.Translator(converted, inter_threads=1, **options)
    except Exception as error:  # CTranslate2 raises several types
        pipe.send(f"{type(error).__name__}: {error}")
        return
    pipe.send(None)
    while True:
        texts, options = pipe.recv()
        pipe.send(
            [
                result.hypotheses[0]
                for result in translator.translate_batch(texts, **options)
            ]
        )


class TranslatorProcess:
    """A converted model, loaded by a process that translates one batch after another."""

    def __init__(
        self, converted: Path, precision: str, device: str, threads: int
    ) -> None:
        """`converted`: folder from `convert`; `precision`: a key of `_COMPUTE_TYPES`; `threads`: those of one batch.

        Raises:
            AggdecError: CTranslate2 cannot compute in that precision on that device.
        """
        options = {
            "device": device,
            "compute_type": _COMPUTE_TYPES[precision],
            "intra_threads": threads,
        }
        self._name = f"ctranslate2 in {precision} on {device}"
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, str(converted), options), daemon=True
        )
        self._process.start()
        theirs.close()
        self.pid: int = self._process.pid or 0
        if reason := self._answer():
            self.close()
            raise AggdecError(f"{self._name}: {reason}")

    def translate(
        self, texts: Sequence[Sequence[str]], options: Mapping[str, Any]
    ) -> list[list[str]]:
        """The best hypothesis of each text, as symbols; texts have no EOS.

        Raises:
            AggdecError: the process has ended, most likely killed for want of memory.
        """
        return self._answer((texts, options))

    def _answer(self, question: Any = None) -> Any:
        try:
            if question is not None:
                self._pipe.send(question)
            return self._pipe.recv()
        except (EOFError, ConnectionError) as error:
            raise AggdecError(
                f"{self._name}: its process ended; if it was killed, free some memory, or leave --peers out"
            ) from error

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


class CTranslate2Runner:
    """One mode of CTranslate2. Token ids are turned into symbols and back outside the timed call."""

    def __init__(
        self,
        translator: TranslatorProcess,
        dictionaries: tuple[Dictionary, Dictionary],
        batches: Sequence[Mapping[str, Any]],
        mode: ModeSpec,
        generation: Mapping[str, Any],
    ) -> None:
        """
        Args:
            translator: a model that `convert` has converted.
            dictionaries: the source's and the target's.
            batches: fairseq's samples, from `batches_of`.
            mode: a mode of CTranslate2.
            generation: fairseq's generation options; `search_settings.check_peers` refuses those it does not have.
        """
        source, target = dictionaries
        self._translator = translator
        self.pid = translator.pid
        self._indices = target.indices
        self._eos = target.eos()
        self.mode = mode
        self.batches: list[list[int]] = [batch["id"].tolist() for batch in batches]
        specials = (source.pad(), source.eos())
        rows = [batch["net_input"]["src_tokens"].tolist() for batch in batches]
        self._texts = [
            [[source.symbols[i] for i in row if i not in specials] for row in batch]
            for batch in rows
        ]
        # the length limit of outputs as fairseq computes it, in tokens without EOS
        slope = generation.get("max_len_a", 0)
        constant = generation.get("max_len_b", 200)
        self._max_len = [int(slope * len(batch[0]) + constant) for batch in rows]
        self._options = {
            "beam_size": mode.beam,
            "min_decoding_length": generation.get("min_len", 1),
            "length_penalty": generation.get("lenpen", 1),
            "no_repeat_ngram_size": generation.get("no_repeat_ngram_size", 0),
            "max_input_length": 0,  # no limit: sources are truncated before
        }

    def decode(self, index: int) -> list[list[str]]:
        shorten_waits(True)  # of this process's threads, which use the same processors
        # after max_len tokens, fairseq takes one more step for EOS
        options = {"max_decoding_length": self._max_len[index] + 1, **self._options}
        return self._translator.translate(self._texts[index], options)

    def outputs(self, index: int, decoded: list[list[str]]) -> dict[int, Output]:
        longest = self._max_len[index]
        return {
            sentence: Output(
                [*(self._indices[symbol] for symbol in symbols[:longest]), self._eos]
            )
            for sentence, symbols in zip(self.batches[index], decoded, strict=True)
        }

    def wait(self) -> None:
        """Nothing to wait for: `translate` returns when the work is done."""


def convert(path: str, data: str, languages: tuple[str, str], folder: Path) -> Path:
    """Convert a checkpoint to CTranslate2's format and return the folder of the result.

    Args:
        path: the checkpoint of a single model.
        data: folder with the dictionaries.
        languages: suffixes of the dictionaries' names.
        folder: gets a subfolder `ctranslate2` with the converted model; a model that is there already is kept.

    Raises:
        AggdecError: the package is not installed, or it cannot convert this kind of model.
    """
    try:
        from ctranslate2.converters import FairseqConverter
    except ImportError as error:
        raise AggdecError(
            f"--peers ctranslate2: the package is not installed ({error}); pip install ctranslate2"
        ) from error
    if ":" in path:
        raise AggdecError(
            f"--peers ctranslate2: takes one model, and --path {path} is an ensemble"
        )
    converted = folder / "ctranslate2"
    if (converted / "model.bin").is_file():
        return converted
    plain = folder / "plain.pt"
    state = read_checkpoint(path)
    weights = {
        name: value.float() if value.is_floating_point() else value
        for name, value in state["model"].items()
    }
    torch.save({"args": _plain_options(state), "model": weights}, plain)
    try:
        with torch.serialization.safe_globals(allowed_globals()):
            FairseqConverter(str(plain), data, *languages).convert(
                str(converted), force=True
            )
    except Exception as error:  # the converter raises many types
        reason = " ".join(str(error).split())
        raise AggdecError(
            f"--peers ctranslate2: cannot convert {path}: {reason}"
        ) from error
    finally:
        plain.unlink()
    return converted


def _plain_options(state: Mapping[str, Any]) -> Namespace:
    """A checkpoint's model options under the flat names of fairseq's command line, also if it was trained by hydra."""
    model = state["args"] if state.get("args") is not None else state["cfg"]["model"]
    options = dict(vars(model)) if isinstance(model, Namespace) else dict(model)
    for side in ("encoder", "decoder"):
        group = options.pop(side, None)
        if hasattr(group, "items"):
            # beside a group, the flat options hold unused defaults; these two must equal the embedding size
            if "embed_dim" in group:
                options |= {
                    f"{side}_{name}": group["embed_dim"]
                    for name in ("input_dim", "output_dim")
                }
            options |= {f"{side}_{name}": value for name, value in group.items()}
    name = options.pop("_name", None)
    return Namespace(
        **{
            "arch": name or "transformer",
            **options,
            "task": "translation",
            "_name": None,
        }
    )
