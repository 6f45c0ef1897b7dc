"""Runs CTranslate2 on the same checkpoint (by its own converter for fairseq), the same sentences and length limits."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary

from fairseq_aggdec.compat.allowed_classes import allowed_globals
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.ctranslate2_process import TranslatorProcess
from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.results import Output


class CTranslate2Runner:
    """One mode of CTranslate2. Token numbers are turned into symbols and back outside the timed call."""

    def __init__(
        self,
        translator: TranslatorProcess,
        dictionaries: tuple[Dictionary, Dictionary],
        batches: Sequence[Mapping[str, Any]],
        mode: Mode,
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
        self._indices = {symbol: number for number, symbol in enumerate(target.symbols)}
        self._eos = target.eos()
        self.mode = mode
        self.batches: list[list[int]] = [batch["id"].tolist() for batch in batches]
        specials = (source.pad(), source.eos())
        self._texts: list[list[list[str]]] = [
            [[source.symbols[i] for i in row if i not in specials] for row in batch["net_input"]["src_tokens"].tolist()]
            for batch in batches
        ]
        self._max_len = [_max_len(batch, generation) for batch in batches]
        self._options = {
            "beam_size": mode.beam,
            "min_decoding_length": generation.get("min_len", 1),
            "length_penalty": generation.get("lenpen", 1),
            "no_repeat_ngram_size": generation.get("no_repeat_ngram_size", 0),
            "max_input_length": 0,  # no limit: sources are truncated before
        }

    def decode(self, number: int) -> list[list[str]]:
        # after max_len tokens, fairseq takes one more step for EOS
        options = {"max_decoding_length": self._max_len[number] + 1, **self._options}
        return self._translator.translate(self._texts[number], options)

    def outputs(self, number: int, decoded: list[list[str]]) -> dict[int, Output]:
        longest = self._max_len[number]
        return {
            sentence: Output([*(self._indices[symbol] for symbol in symbols[:longest]), self._eos])
            for sentence, symbols in zip(self.batches[number], decoded, strict=True)
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
        raise AggdecError(f"--peers ctranslate2: takes one model, and --path {path} is an ensemble")
    converted = folder / "ctranslate2"
    if (converted / "model.bin").is_file():
        return converted
    plain = folder / "plain.pt"
    state = read_checkpoint(path)
    torch.save({"args": _plain_options(state), "model": _single_precision(state["model"])}, plain)
    try:
        with torch.serialization.safe_globals(allowed_globals()):
            FairseqConverter(str(plain), data, *languages).convert(str(converted), force=True)
    except Exception as error:  # the converter raises many types
        reason = " ".join(str(error).split())
        raise AggdecError(f"--peers ctranslate2: cannot convert {path}: {reason}") from error
    finally:
        plain.unlink()
    return converted


def _max_len(batch: Mapping[str, Any], generation: Mapping[str, Any]) -> int:
    """The length limit of outputs as fairseq computes it, in tokens without EOS."""
    width = batch["net_input"]["src_tokens"].size(1)
    return int(generation.get("max_len_a", 0) * width + generation.get("max_len_b", 200))


def _plain_options(state: Mapping[str, Any]) -> Namespace:
    """A checkpoint's model options under the flat names of fairseq's command line, also if it was trained by hydra."""
    model = state["args"] if state.get("args") is not None else state["cfg"]["model"]
    options = dict(vars(model)) if isinstance(model, Namespace) else dict(model)
    for side in ("encoder", "decoder"):
        group = options.pop(side, None)
        if hasattr(group, "items"):
            # beside a group, the flat options hold unused defaults; these two must equal the embedding size
            if "embed_dim" in group:
                options |= {f"{side}_{name}": group["embed_dim"] for name in ("input_dim", "output_dim")}
            options |= {f"{side}_{name}": value for name, value in group.items()}
    name = options.pop("_name", None)
    return Namespace(**{"arch": name or "transformer", **options, "task": "translation", "_name": None})


def _single_precision(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value.float() if value.is_floating_point() else value for name, value in weights.items()}
