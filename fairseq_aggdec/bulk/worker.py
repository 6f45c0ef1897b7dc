"""One worker of `aggdec decode`: from the text of a shard to its outputs."""

from __future__ import annotations

from argparse import Namespace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

import fairseq_aggdec
from fairseq_aggdec.bulk.shards import DecodedShard, Shard
from fairseq_aggdec.distillation.data_bin import DataBin
from fairseq_aggdec.distillation.environment import device_of_environment
from fairseq_aggdec.tasks.search_options import given_search_options
from fairseq_aggdec.text.model import Model, corrects_by, encoders_of, load_models, reads_text
from fairseq_aggdec.text.shipped import longest_learnt


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

        An empty line stays empty. A line that is not UTF-8, and one with a sentence that cannot be decoded, are
        reported; they are left empty, or where the model corrects that sentence stays as it was.

        Raises:
            AggdecError: an option, the data folder or a model cannot be used, or the file has changed.
            OSError: a file cannot be read.
        """
        lines: list[str] = []
        skipped: dict[int, str] = {}
        for place, line in enumerate(shard.read()):
            try:
                lines.append(line.decode("utf-8"))
            except UnicodeDecodeError:
                skipped[place] = "not valid UTF-8"
                lines.append("")
        args = self._args
        results = self._model.decode(
            lines,
            args.decoding,
            beam=args.beam,
            top_beta=args.top_beta,
            tolerance=args.tolerance,
            max_tokens=args.max_tokens,
            batch_size=args.batch_size,
            **given_search_options(args),
        )
        outputs = [result.text for result in results]
        for place, result in enumerate(results):
            if result.notes:
                skipped[place] = "; ".join(result.notes)
                if not self._model.corrects:  # no translation; a correction may be the source
                    outputs[place] = ""
        return DecodedShard(shard, outputs, [(shard.first_line + place, skipped[place]) for place in sorted(skipped)])

    @cached_property
    def _model(self) -> Model:
        args = self._args
        fairseq_aggdec.register()
        torch.set_num_threads(args.threads)
        data = DataBin.find(Path(args.data), args.source_lang, args.target_lang)
        device = device_of_environment(args.cpu, args.precision)
        languages = (data.source_lang, data.target_lang)
        precision = args.precision or "fp32"
        task, models = load_models(args.path, args.data, *languages, device, precision, **self._task_options)
        learnt = longest_learnt(Path(args.path))
        return Model(
            task,
            models,
            *text_encoders(args, data),
            longest=args.longest or learnt,
            cautious=learnt is not None,
            corrects=corrects_by(args.tokenizer, *languages),
            splits=not args.one_sentence_a_line and reads_text(args.tokenizer, args.bpe),
        )


def text_encoders(args: Namespace, data: DataBin) -> tuple[Any, Any]:
    """The tokeniser and the encoder of subwords, or None in the place of one that is not asked for.

    Raises:
        AggdecError: an option or a file of theirs cannot be used.
    """
    return encoders_of(Namespace(**{**vars(args), "source_lang": data.source_lang, "target_lang": data.target_lang}))
