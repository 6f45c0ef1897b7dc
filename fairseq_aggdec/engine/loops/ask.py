"""Whether a loop on the device decodes a batch: AGGDEC_GPU=loops, one captured engine, and nothing that it has not."""

import logging
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from torch import Tensor

from fairseq_aggdec.decoding.beam.search import BeamOptions
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.engine.choose_backend import has_triton
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.graphs.passes import Shape
from fairseq_aggdec.engine.graphs.runner import Graphs
from fairseq_aggdec.engine.loops.beams import BeamLoop
from fairseq_aggdec.engine.loops.loop import decode, failures
from fairseq_aggdec.engine.loops.rows import RowLoop, RowSearch
from fairseq_aggdec.errors import AggdecError

logger = logging.getLogger(__name__)

DeviceLoop = Callable[[Any, Tensor], list[Any] | None]
"""from a verifier, ready to score the batch from position 0, and the first tokens, B on the host, to what
`draft_verify_accept` or `plain_beam_search` returns; None where that decodes the batch, for which verifier and drafter
must be made ready again"""


def device_loop(
    verifiers: Iterable[Any], rules: SearchRules, search: RowSearch | BeamOptions
) -> DeviceLoop | None:
    """What decodes a batch on the device; None where a loop of `decoding` does. `BeamOptions`: a step in each pass."""
    if not _is_on() or failures:
        return None
    engine, *others = verifiers
    runner = engine.runner if isinstance(engine, Decoder) else None
    if (
        others
        or not isinstance(runner, Graphs)
        or not runner.allows(rules, Shape(1, 1, 1, 1), 0)
    ):
        return None
    kind: Any = RowLoop if isinstance(search, RowSearch) else BeamLoop
    if not kind.serves(search) or not has_triton(engine.parts.device):
        return None
    _say("loops on the device decode (AGGDEC_GPU=loops)")
    return lambda verifier, first_tokens: decode(
        kind(verifier.runner, rules, search), first_tokens
    )


def _is_on() -> bool:
    """Whether the environment asks for the loops."""
    wanted = os.environ.get("AGGDEC_GPU", "")
    if wanted not in ("", "loops"):
        raise AggdecError(f"AGGDEC_GPU={wanted}: give loops, or leave it out")
    return wanted == "loops"


@cache
def _say(message: str) -> None:
    """Log a message, once."""
    logger.info(message)
