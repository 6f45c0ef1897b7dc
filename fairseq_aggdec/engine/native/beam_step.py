"""The step of `decoding.beam.plain`, in C."""

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.plain import Beams, BeamStep, Candidates, Ends
from fairseq_aggdec.engine.native.library import Kernels, kernels


class _CStep(ctypes.Structure):
    """`Step` of beams.c, where the fields are described."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("sentences", "size", "eos", "length", "entries", "slot", "keeps_order")),
        *((name, ctypes.c_void_p) for name in ("counts", "texts", "paths", "sums", "values", "names")),
        *((name, ctypes.c_void_p) for name in ("found", "best", "parents", "tokens")),
        *((name, ctypes.c_void_p) for name in ("new_counts", "new_texts", "new_paths", "new_sums", "ends", "scores")),
    )


class CBeamStep(BeamStep):
    """A `decoding.beam.plain.BeamStep` for one batch of at most `sentences` sentences; `size` is N."""

    def __init__(self, found: Kernels, sentences: int, size: int, eos: int) -> None:
        self._kernels, self._size, self._eos = found, size, eos
        shape = (sentences, 2 * size)
        self._best = Candidates(
            torch.empty(shape, dtype=torch.float),
            torch.empty(shape, dtype=torch.long),
            torch.empty(shape, dtype=torch.long),
            torch.empty(sentences, dtype=torch.long),
        )
        self._ends = torch.empty(shape, dtype=torch.long)
        self._scores = torch.empty(sentences * size, dtype=torch.float)
        best = (self._best.found, self._best.sums, self._best.parents, self._best.tokens)
        names = ("found", "best", "parents", "tokens", "ends", "scores")
        tensors = (*best, self._ends, self._scores)
        self._own = {name: tensor.data_ptr() for name, tensor in zip(names, tensors, strict=True)}

    def take(
        self, beams: Beams, values: Tensor, names: Tensor, resolve_ties: Callable[[Candidates], None] | None
    ) -> tuple[Beams, list[Ends]]:
        values, names = values.contiguous(), names.contiguous()
        length, sentences = beams.texts.size(1), beams.counts.size(0)
        counts = torch.empty_like(beams.counts)
        texts = beams.texts.new_empty(sentences * self._size, length + 1)
        paths, sums = torch.empty_like(texts), beams.sums.new_empty(texts.shape)
        step = _CStep(
            sentences=sentences,
            size=self._size,
            eos=self._eos,
            length=length,
            entries=values.size(1),
            slot=length * self._size,
            keeps_order=resolve_ties is None,
            counts=beams.counts.data_ptr(),
            texts=beams.texts.data_ptr(),
            paths=beams.paths.data_ptr(),
            sums=beams.sums.data_ptr(),
            values=values.data_ptr(),
            names=names.data_ptr(),
            new_counts=counts.data_ptr(),
            new_texts=texts.data_ptr(),
            new_paths=paths.data_ptr(),
            new_sums=sums.data_ptr(),
            **self._own,
        )
        address = ctypes.addressof(step)
        if self._kernels.candidates(address) and resolve_ties is not None:
            resolve_ties(self._best)
        ended = self._kernels.take(address)
        ends: list[Ends] = []
        if ended:
            found = zip(self._ends.view(-1, 2)[:ended].tolist(), self._scores[:ended].tolist(), strict=True)
            ends = [(sentence, row, score) for (sentence, row), score in found]
        return Beams(counts, texts, paths, sums), ends


def beam_step(sentences: int, size: int, eos: int) -> CBeamStep | None:
    """A `CBeamStep`; None without kernels."""
    found = kernels()
    return None if found is None else CBeamStep(found, sentences, size, eos)
