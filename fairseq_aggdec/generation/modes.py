"""The table of decoding modes: a row each. What parses arguments reads it, so it imports neither fairseq nor torch.

A mode of one's own is a row (`add`) and, where it drafts in a new way, an entry of `generation.drafting.DRAFTERS`
(docs/developing.md).
"""

from dataclasses import dataclass
from typing import Literal

COPIES, BLOCK_MODEL, HEADS = "copies", "block model", "heads"
"""who drafts: the source's tokens are copied, a model drafts a block, or the verifier's own proposal heads do"""
DRAFTS = ("auto", "whole")
"""values of --drafts"""


@dataclass(frozen=True)
class Mode:
    """One value of --decoding."""

    name: str
    help: str
    drafter: str | None = None
    """a key of `generation.drafting.DRAFTERS`; None: nothing is drafted"""
    acceptance: Literal["exact", "criterion", "none"] = "exact"
    """which draft tokens pass: the verifier's own, those that a criterion accepts, or all, without a verifier"""
    lossless: bool = True
    """whether the output is that of fairseq's search, unless an option of acceptance says otherwise"""
    beam: bool = False
    """whether the search has the beam of --beam; otherwise a beam of one"""
    needs_drafter: bool = False
    """whether it is refused without --drafter-path"""
    options: tuple[str, ...] = ()
    """the options of decoding that it reads; others are refused"""
    stands_for: tuple[str, ...] = ()
    """the modes of which it chooses one by what is given"""


_BLOCKS = ("drafter_path", "block_size")
_CRITERION = ("top_beta", "tolerance")
_CRITERION_OF_BLOCKS = (*_CRITERION, "accept_distance", "min_block")
"""not of `iad++`: behind a shorter draft the model's own word would stand, where the input's was to stay"""
_PRECISE = ("int8", "bit_exact")

MODES: dict[str, Mode] = {}
"""all modes by name"""


def add(mode: Mode) -> None:
    """Add a row."""
    MODES[mode.name] = mode


for _mode in (
    Mode("beam", "fairseq's own search, unchanged", beam=True),
    Mode("greedy", "the output of --beam 1 by this plugin's engine", options=_PRECISE),
    Mode(
        "iad",
        "the same output by Input-guided Aggressive Decoding, for tasks that mostly copy their input",
        COPIES,
        options=("max_draft_len", "drafts", *_PRECISE),
    ),
    Mode(
        "iad++",
        "keeps the input where the model is not sure of another word (--top-beta, --tolerance)",
        COPIES,
        "criterion",
        lossless=False,
        options=(*_CRITERION, "int8"),
    ),
    Mode(
        "gad",
        "the output of --beam 1 by Generalized Aggressive Decoding with --drafter-path",
        BLOCK_MODEL,
        needs_drafter=True,
        options=(*_BLOCKS, "drafts", *_PRECISE),
    ),
    Mode(
        "gad++",
        "nearly the same and sooner, as it keeps draft tokens that the verifier finds good enough (--top-beta, "
        "--tolerance)",
        BLOCK_MODEL,
        "criterion",
        lossless=False,
        needs_drafter=True,
        options=(*_BLOCKS, *_CRITERION_OF_BLOCKS, "int8"),
    ),
    Mode(
        "nar",
        "the drafter's own output, unverified",
        BLOCK_MODEL,
        "none",
        lossless=False,
        options=(*_BLOCKS, "int8"),
    ),
    Mode(
        "blockwise",
        "the output of --beam 1 by a model with proposal heads, which drafts itself",
        HEADS,
        "criterion",
        options=("block_size", *_CRITERION_OF_BLOCKS, *_PRECISE),
    ),
    Mode(
        "aggressive",
        "a lossless mode by what is given: gad with --drafter-path, else blockwise where the model has heads, else iad",
        options=("max_draft_len", *_BLOCKS, "drafts", *_PRECISE),
        stands_for=("gad", "blockwise", "iad"),
    ),
    Mode(
        "aggressive-beam",
        "the n-best list of beam, by any --beam, sooner",
        BLOCK_MODEL,
        beam=True,
        options=(*_BLOCKS, "int8"),
    ),
):
    add(_mode)


def readers(option: str) -> list[str]:
    """The modes that read an option."""
    return [name for name, mode in MODES.items() if option in mode.options]


def modes_help() -> str:
    """The help text of --decoding."""
    return "; ".join(f"{name}: {mode.help}" for name, mode in MODES.items())


def help_of(option: str, text: str) -> str:
    """The help text of an option, after the modes that read it."""
    return f"{', '.join(readers(option))}: {text}"
