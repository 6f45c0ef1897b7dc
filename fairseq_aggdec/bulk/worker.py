"""One worker of `aggdec decode`: from the text of a shard to its outputs."""

from __future__ import annotations

from argparse import Namespace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import encoders

import fairseq_aggdec
from fairseq_aggdec.bulk.shards import DecodedShard, Shard
from fairseq_aggdec.distillation.batches import plan_batches
from fairseq_aggdec.distillation.data_bin import DataBin, Tokens
from fairseq_aggdec.distillation.environment import device_of_environment
from fairseq_aggdec.distillation.settings import SearchOptions
from fairseq_aggdec.distillation.translator import Translator
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.search_options import given_search_options
from fairseq_aggdec.writing.tokenizer import decode_for

_NOTHING: Tokens = np.array([], dtype=np.int64)
"""the tokens of an empty line, and of one that is not UTF-8"""


class Worker:
    """Decodes shards. A shard's outputs do not depend on the shards before it, nor on which worker decodes it."""

    def __init__(self, args: Namespace, task_options: dict[str, Any]) -> None:
        """
        Args:
            args: the options of `aggdec decode`.
            task_options: the options of the plugin's task.
        """
        self._args = args
        self._task_options = task_options

    def decode(self, shard: Shard) -> DecodedShard:
        """Decodes the lines of a shard; models are loaded for the first shard.

        An empty line stays empty. A line that is not UTF-8, or too long for the models, is skipped and reported.

        Raises:
            AggdecError: an option, the data folder or a model cannot be used, or the file has changed.
            OSError: a file cannot be read.
        """
        lines: list[str] = []
        sources: list[Tokens] = []
        skipped: dict[int, str] = {}
        for place, line in enumerate(shard.read()):
            try:
                text = line.decode("utf-8").strip()
            except UnicodeDecodeError:
                skipped[place], text = "not valid UTF-8", ""
            lines.append(text)
            sources.append(self._encode(text) if text else _NOTHING)
        translator = self._translator
        translator.start_afresh()
        longest = translator.longest_source
        plan = plan_batches(sources, longest, self._args.max_tokens, self._args.batch_size)
        for place in plan.skipped.tolist():
            if len(sources[place]):
                skipped[place] = f"too long: {len(sources[place])} tokens, and the model takes {longest}"
        targets: dict[int, Tokens] = {}
        for batch in plan.batches:
            numbers = [shard.first_line + place for place in batch.tolist()]
            found = translator.translate(numbers, [sources[place] for place in batch])
            targets.update(zip(batch.tolist(), found, strict=True))
        decoded = cache(lambda place, line: self._decode(targets[place], line))  # the same line can come often
        return DecodedShard(
            shard,
            [
                decoded(place, line) if place in targets else ""
                for place, line in zip(plan.representative.tolist(), lines, strict=True)
            ],
            [(shard.first_line + place, skipped[place]) for place in sorted(skipped)],
        )

    @cached_property
    def _data(self) -> DataBin:
        return DataBin.find(Path(self._args.data), self._args.source_lang, self._args.target_lang)

    @cached_property
    def _translator(self) -> Translator:
        args = self._args
        fairseq_aggdec.register()
        torch.set_num_threads(args.threads)
        device = device_of_environment(args.cpu, args.precision)
        search = SearchOptions(beam=args.beam or 1, **given_search_options(args))
        return Translator(args.path, self._data, search, device, args.precision or "fp32", **self._task_options)

    @cached_property
    def _encoders(self) -> list[Any]:
        return text_encoders(self._args, self._data)

    def _encode(self, text: str) -> Tokens:
        for encoder in self._encoders:
            text = encoder.encode(text)
        tokens: Tokens = self._data.source_dictionary.encode_line(text, add_if_not_exist=False).long().numpy()
        return tokens

    def _decode(self, tokens: Tokens, line: str) -> str:
        text = self._data.target_dictionary.string(torch.from_numpy(tokens))
        for encoder in reversed(self._encoders):
            text = decode_for(encoder, text, line)
        return " ".join(text.split("\n"))  # a model with byte subwords can produce line feeds


def text_encoders(args: Namespace, data: DataBin) -> list[Any]:
    """The tokeniser and the subword encoder, if they are asked for, in the order of encoding.

    Raises:
        AggdecError: an option or a file of theirs cannot be used.
    """
    args = Namespace(**vars(args))
    args.source_lang, args.target_lang = data.source_lang, data.target_lang
    try:
        found = encoders.build_tokenizer(args), encoders.build_bpe(args)
    except (ImportError, OSError) as error:
        raise AggdecError(f"--tokenizer {args.tokenizer}, --bpe {args.bpe}: {error}") from error
    return [encoder for encoder in found if encoder is not None]
