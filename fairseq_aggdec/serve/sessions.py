"""The last outputs of texts that grow: as `draft` of a request, or kept for its `session`."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from sys import getsizeof
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from fairseq_aggdec.text.sentences import split_text
from fairseq_aggdec.text.session import counterparts

SECONDS = 600
"""for which the outputs of a session are kept after its last request"""
MOST_SESSIONS = 1000
MOST_KEPT = 16 * 1024 * 1024
"""bytes of all sessions' sentences and outputs; beyond these two the oldest sessions go"""
LONGEST_NAME = 100
"""characters of a session's id"""
LONGEST_DRAFT = 1000
"""characters of the draft of a sentence; a longer one is left out"""

Key = tuple[str, str]
"""the Origin header of a request, and the session's id: no page of another origin shares it"""


@dataclass(frozen=True)
class Growing:
    """What a request says about the last outputs of its texts."""

    drafts: list[str] = field(default_factory=list)
    """the last output of each text; none: it gave no drafts"""
    session: Key | None = None


def growing(request: Request, fields: dict[str, Any], q: str | list[str]) -> Growing:
    """What is in the fields `draft` and `session` of a request for the text, or texts, `q`.

    Raises:
        HTTPException: one has another type, or is too long (400).
    """
    session = fields.get("session", "")
    if not isinstance(session, str) or len(session) > LONGEST_NAME:
        raise HTTPException(
            400,
            f"Invalid request: session must be a text of at most {LONGEST_NAME} characters",
        )
    draft = fields.get("draft", [] if isinstance(q, list) else "")
    drafts = draft if isinstance(draft, list) else [draft]
    of_texts = len(q) if isinstance(q, list) else 1
    if (
        not all(isinstance(text, str) for text in drafts)
        or isinstance(draft, list) != isinstance(q, list)
        or len(drafts) not in (0, of_texts)
    ):
        raise HTTPException(
            400,
            "Invalid request: draft must be a text, or for a list in q a list of as many",
        )
    key = (request.headers.get("Origin", ""), session) if session else None
    return Growing(drafts, key)


def drafts_of(
    sentences: list[list[str]], drafts: list[str], language: str, last: dict[str, str]
) -> dict[str, str]:
    """The drafts of a request's sentences.

    Args:
        sentences: of each of its texts.
        drafts: of its texts, as in `Growing`.
        language: ISO code of the drafts' language.
        last: what its session kept.
    """
    now = set(chain.from_iterable(sentences))
    was = counterparts(last.keys() - now, now - last.keys())
    found = {sentence: last[before] for sentence, before in was.items()}
    # those that the request has itself, in their order
    for some, draft in zip(sentences, drafts, strict=False):
        pieces = [draft[start:end] for start, end in split_text(draft, language)]
        found |= {
            sentence: piece
            for sentence, piece in zip(some, pieces, strict=False)
            if len(piece) <= LONGEST_DRAFT
        }
    return found


class Sessions:
    """The outputs of the last request of each session, by sentence: of the latest sessions, for some minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # by the time of their last request
        self._kept: OrderedDict[Key, tuple[float, int, dict[str, str]]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def last(self, session: Key) -> dict[str, str]:
        """The outputs of a session's last request; none where it is new, or too old."""
        self._drop_old()
        _, _, outputs = self._kept.get(session, (0, 0, {}))
        return outputs

    def keep(self, session: Key, outputs: dict[str, str]) -> None:
        """Replace the outputs of a session."""
        self._drop(session)
        size = sum(map(getsizeof, [outputs, *session, *outputs, *outputs.values()]))
        self._kept[session] = self._clock(), size, outputs
        self._bytes += size
        self._drop_old()

    def _drop_old(self) -> None:
        """Drop the sessions that are too old, and of too many the oldest."""
        while self._kept:
            oldest = next(iter(self._kept))
            is_old = self._kept[oldest][0] < self._clock() - SECONDS
            if not (
                is_old or len(self._kept) > MOST_SESSIONS or self._bytes > MOST_KEPT
            ):
                break
            self._drop(oldest)

    def _drop(self, session: Key) -> None:
        _, size, _ = self._kept.pop(session, (0, 0, {}))
        self._bytes -= size
