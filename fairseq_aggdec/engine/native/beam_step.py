"""The step of `decoding.beam.plain`, in C."""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.plain import Beams, Candidates, Ends
from fairseq_aggdec.decoding.beam.prefix_tree import Rows
from fairseq_aggdec.decoding.beam.search import BeamOptions
from fairseq_aggdec.engine.native.library import ADDRESS, I64, Kernels, fields, kernels


class _CStep(ctypes.Structure):
    """`Step` of beams.c, where the fields are described."""

    _fields_ = (
        *fields(I64, "sentences size eos length entries slot keeps_order"),
        *fields(ADDRESS, "counts texts paths sums values names"),
        *fields(ADDRESS, "found best parents tokens"),
        *fields(ADDRESS, "new_counts new_texts new_paths new_sums ends scores"),
    )


class CBeamStep:
    """A `decoding.beam.plain.BeamStep` for one batch of at most `sentences` sentences."""

    def __init__(self, found: Kernels, sentences: int, options: BeamOptions) -> None:
        self._kernels = found
        self._options = options
        shape = (sentences, 2 * options.size)
        self._candidates = Candidates(
            sums=torch.empty(shape, dtype=torch.float),
            parents=torch.empty(shape, dtype=torch.long),
            tokens=torch.empty(shape, dtype=torch.long),
            found=torch.empty(sentences, dtype=torch.long),
        )
        self._ends = torch.empty(shape, dtype=torch.long)
        self._scores = torch.empty(sentences * options.size, dtype=torch.float)

    def __call__(
        self,
        beams: Beams,
        values: Tensor,
        names: Tensor,
        whole: Sequence[Rows],
    ) -> tuple[Beams, Ends]:
        # the beams after the step
        size = self._options.size
        best = self._candidates
        sentences = beams.counts.size(0)
        length = beams.texts.size(1)
        new_texts = beams.texts.new_empty(sentences * size, length + 1)
        after = Beams(
            torch.empty_like(beams.counts),
            new_texts,
            torch.empty_like(new_texts),
            beams.sums.new_empty(new_texts.shape),
        )

        # the arguments in C, in the order of its fields
        tensors = (
            beams.counts,
            beams.texts,
            beams.paths,
            beams.sums,
            values.contiguous(),
            names.contiguous(),
            best.found,
            best.sums,
            best.parents,
            best.tokens,
            after.counts,
            after.texts,
            after.paths,
            after.sums,
            self._ends,
            self._scores,
        )
        sizes = (
            sentences,
            size,
            self._options.eos,
            length,
            values.size(1),
            length * size,
            not whole,
        )
        step = _CStep(*sizes, *(tensor.data_ptr() for tensor in tensors))
        address = ctypes.addressof(step)

        # the step; equal sums are resolved as fairseq does
        if self._kernels.candidates(address):
            best.resolve_ties(beams, whole, self._options)
        count = self._kernels.take(address)
        ends = self._ends.view(-1, 2)[:count].tolist() if count else []
        scores = self._scores[:count].tolist() if count else []
        return after, [
            (sentence, row, score)
            for (sentence, row), score in zip(ends, scores, strict=True)
        ]


def beam_step(sentences: int, options: BeamOptions) -> CBeamStep | None:
    """A `CBeamStep`; None without kernels."""
    found = kernels()
    return None if found is None else CBeamStep(found, sentences, options)
