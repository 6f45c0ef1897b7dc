"""Runs modes of this plugin and of fairseq's own search."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

import torch
from fairseq import utils
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.oracle import OracleGenerator, Texts
from fairseq_aggdec.lab.bench.rounds import Output
from fairseq_aggdec.lab.verify.differences import Gap, beam_gap_of, gap_of
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationTask


class FairseqRunner:
    """One mode, with its generator and the batches on the models' device."""

    def __init__(
        self,
        task: AggressiveTranslationTask,
        models: list[BaseFairseqModel],
        batches: Sequence[dict[str, Any]],
        mode: Mode,
        texts: Texts | None = None,
        **generation: Any,
    ) -> None:
        """
        Args:
            task: from `load`.
            models: from `load`, on their device, in the mode's precision.
            batches: fairseq's samples, from `batches_of` or fairseq's iterator.
            mode: a mode of this plugin or of fairseq's search.
            texts: drafts are made from these in place of the source's tokens or the drafter's own drafts.
            generation: fairseq's generation options (`lenpen=...`), except the beam, which is the mode's.
        """
        device = next(models[0].parameters()).device
        self._task, self.models = task, models
        self.samples = [
            utils.apply_to_sample(lambda tensor: tensor.to(device), batch)
            for batch in batches
        ]
        self.mode = mode
        self.batches: list[list[int]] = [batch["id"].tolist() for batch in batches]
        self.wait: Callable[[], None] = (
            torch.cuda.synchronize if device.type == "cuda" else lambda: None
        )
        extra: dict[str, Any] = {} if texts is None else {"texts": texts}
        if mode.budget is not None:
            extra["budget"] = mode.budget
        # fairseq's search computes in the models' precision, and has no options here
        own = mode.row.is_fairseqs
        self.generator = task.build_generator(
            models,
            Namespace(**generation, beam=mode.beam),
            seq_gen_cls=None if texts is None else OracleGenerator,
            extra_gen_cls_kwargs=extra or None,
            decoding=Decoding(mode.decoding)
            if own
            else task.decoding.with_mode(mode.decoding, **mode.options),
        )

    def decode(self, number: int) -> list[list[dict[str, Any]]]:
        return self._step(self.samples[number])

    def _step(
        self, sample: dict[str, Any], prefix: Tensor | None = None
    ) -> list[list[dict[str, Any]]]:
        """Decode as the task does, which may force a first token or another prefix where none is given."""
        return self._task.inference_step(
            self.generator, self.models, sample, prefix_tokens=prefix
        )

    def gap(self) -> Gap:
        """The function that measures with this mode how far two tokens, or candidates of a beam, are apart."""
        samples = {}
        # `compare` may leave out the last ones
        for sentences, batch in zip(self.batches, self.samples, strict=False):
            for row, number in enumerate(sentences):
                net_input = {
                    name: value[row : row + 1]
                    for name, value in batch["net_input"].items()
                }
                samples[number] = {
                    "id": batch["id"][row : row + 1],
                    "net_input": net_input,
                }
        if self.mode.beam == 1:
            return gap_of(self._step, samples)
        return beam_gap_of(self._step, samples, self.generator.search)

    def outputs(
        self, number: int, decoded: list[list[dict[str, Any]]]
    ) -> dict[int, Output]:
        return {
            sentence: Output(
                found[0]["tokens"].tolist(), found[0].get("stats"), found[0],
                [token for hypothesis in found for token in hypothesis["tokens"].tolist()],
            )
            for sentence, found in zip(self.batches[number], decoded, strict=True)
        }  # fmt: skip
