"""A text that grows and is decoded again and again: the last outputs are kept, or are the drafts of the next ones."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from fairseq_aggdec.text.pipeline import Outputs, Part, TextPipeline
from fairseq_aggdec.text.results import Result
from fairseq_aggdec.text.spacing import common_start

Hypotheses = dict[str, list[dict[str, Any]]]
"""fairseq's of each `Part.read`, best first"""


class Guard(Protocol):
    """What a shipped model may be trusted with (`demo.shipped.ShippedModel`)."""

    @property
    def characters(self) -> Mapping[int, int]:
        """A text is read with these replaced."""

    @property
    def after_decoding(self) -> Callable[[str, Result], Result]:
        """(source, result): the result that may be trusted."""


class Session:
    """The last outputs of one text, by sentence; `Model.session` makes it."""

    def __init__(
        self,
        model: TextPipeline,
        decode: Callable[[Sequence[Part]], Outputs],
        reads_drafts: bool,
        guard: Guard | None = None,
    ) -> None:
        """
        Args:
            model: cuts texts into parts.
            decode: the outputs of parts.
            reads_drafts: whether it reads their drafts, which change no output.
            guard: None: results are what the model says.
        """
        self.reads_drafts = reads_drafts
        """whether last outputs are drafts; else unchanged sentences alone profit"""
        self._model = model
        self._decode = decode
        self._guard = guard
        self._last: Hypotheses = {}

    def update(self, text: str) -> Result:
        """The result of the text as it is now: exactly that of `Model.translate` without a session.

        A sentence that was in the last text, too, is not decoded again, and counts no iterations.

        Raises:
            AggdecError: as `Model.translate`.
        """
        guard = self._guard
        plain = text if guard is None else text.translate(guard.characters)
        parts = self._model.parts(plain)
        decoded = {part.read: part for part in parts if part.is_decoded}
        last = self._last
        kept = {read: last[read] for read in decoded if read in last}
        new = self._decoded(
            [part for read, part in decoded.items() if read not in last],
            {read: found for read, found in last.items() if read not in kept},
        )
        # as a whole, where threads share a session
        self._last = kept | new
        outputs = {(read, ""): found for read, found in (kept | new).items()}
        result = self._model.result(plain, parts, outputs)
        if guard is not None:
            result = guard.after_decoding(text, result)
        sentences = [
            replace(one, iterations=0, drafted=0, accepted=0)
            if part.read in kept
            else one
            for part, one in zip(parts, result.sentences, strict=True)
        ]
        return replace(result, sentences=sentences)

    def _decoded(self, changed: Sequence[Part], gone: Hypotheses) -> Hypotheses:
        """The outputs of sentences that were not in the last text, with those of `gone`, which they may have been."""
        if not changed:
            return {}
        before: dict[str, str] = {}
        if self.reads_drafts:
            before = counterparts(gone, [part.read for part in changed])
        drafted = [
            replace(part, draft=self._draft(gone[before[part.read]]))
            if part.read in before
            else part
            for part in changed
        ]
        found = self._decode(drafted)
        return {read: hypotheses for (read, _), hypotheses in found.items()}

    def _draft(self, hypotheses: Sequence[dict[str, Any]]) -> str:
        """The best one, in subwords."""
        return " ".join(self._model.tokens(hypotheses[0]["tokens"])[:-1])


def counterparts(before: Collection[str], changed: Collection[str]) -> dict[str, str]:
    """For each changed sentence that of `before` with which it has the longest common beginning.

    Among sentences in alphabetical order that is a neighbour, so that long texts take no longer than sorting.
    """
    ordered = sorted(before)
    found = {}
    for sentence in changed if ordered else ():
        place = bisect_left(ordered, sentence)
        neighbours = ordered[max(0, place - 1) : place + 1]
        found[sentence] = max(neighbours, key=partial(common_start, sentence))
    return found
