"""Runs modes of this plugin and of fairseq's search."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
from fairseq import utils
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.oracle import OracleGenerator, Texts
from fairseq_aggdec.lab.bench.rounds import Output
from fairseq_aggdec.lab.verify.differences import Gap, beam_gap_of, gap_of
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationTask


class SampleRunner:
    """A mode that decodes fairseq's samples, on the device of a model."""

    def __init__(
        self,
        mode: ModeSpec,
        model: BaseFairseqModel,
        samples: Sequence[dict[str, Any]],
    ) -> None:
        device = next(model.parameters()).device
        self.mode = mode
        self.samples = utils.apply_to_sample(
            lambda tensor: tensor.to(device), list(samples)
        )
        self.batches: list[list[int]] = [sample["id"].tolist() for sample in samples]
        self.wait: Callable[[], None] = (
            torch.cuda.synchronize if device.type == "cuda" else lambda: None
        )


class FairseqRunner(SampleRunner):
    """One mode, with its generator and the batches on the models' device."""

    def __init__(
        self,
        task: AggressiveTranslationTask,
        models: list[BaseFairseqModel],
        batches: Sequence[dict[str, Any]],
        mode: ModeSpec,
        texts: Texts | None = None,
        **generation: Any,
    ) -> None:
        """
        Args:
            task: from `load`.
            models: from `load`, on their device, in the mode's precision.
            batches: fairseq's samples, from `batches_of` or fairseq's iterator.
            mode: a mode of this plugin or of fairseq's search.
            texts: drafts are made from these in place of the source's tokens or the drafter's drafts.
            generation: fairseq's generation options (`lenpen=...`), except the beam, which is the mode's.
        """
        super().__init__(mode, models[0], batches)
        self._task = task
        self.models = models
        extra: dict[str, Any] = {} if texts is None else {"texts": texts}
        if mode.budget is not None:
            extra["budget"] = mode.budget
        decoding = task.decoding.with_mode(mode.decoding, **mode.options)
        if mode.row.is_fairseqs:
            # it computes in the models' precision, and has no options here
            decoding = Decoding(mode.decoding)
        self.generator = task.build_generator(
            models,
            Namespace(**generation, beam=mode.beam),
            seq_gen_cls=None if texts is None else OracleGenerator,
            extra_gen_cls_kwargs=extra or None,
            decoding=decoding,
        )

    def decode(self, index: int) -> list[list[dict[str, Any]]]:
        return self._step(self.samples[index])

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
            for row, sentence in enumerate(sentences):
                alone = slice(row, row + 1)
                net_input = batch["net_input"].items()
                samples[sentence] = {
                    "id": batch["id"][alone],
                    "net_input": {name: value[alone] for name, value in net_input},
                }
        if self.mode.beam == 1:
            return gap_of(self._step, samples)
        return beam_gap_of(self._step, samples, self.generator.search)

    def outputs(
        self, index: int, decoded: list[list[dict[str, Any]]]
    ) -> dict[int, Output]:
        outputs = {}
        for sentence, hypotheses in zip(self.batches[index], decoded, strict=True):
            best = hypotheses[0]
            lists = [each["tokens"].tolist() for each in hypotheses]
            outputs[sentence] = Output(
                lists[0], best.get("stats"), best, list(chain.from_iterable(lists))
            )
        return outputs
