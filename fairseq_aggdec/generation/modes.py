"""The table of decoding modes. Argument parsers read it, so it imports neither fairseq nor torch.

To add a mode, add a row (`add`) and, for a new drafter, an entry of `generation.drafting.DRAFTERS`
(docs/CONTRIBUTING.md).
"""

from dataclasses import dataclass
from typing import Literal

COPIES, BLOCK_MODEL, SMALL_MODEL, HEADS = "copies", "block model", "small model", "heads"
"""drafters: the source is copied, a block drafter or an ordinary model drafts, or the verifier's own proposal heads"""
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
    """draft tokens that pass: the verifier's own choices, those that a criterion accepts, or all, without a verifier"""
    is_lossless: bool = True
    """whether the output equals that of fairseq's search, unless an option of acceptance is given"""
    has_beam: bool = False
    """whether the beam has the size of --beam; else 1"""
    needs_drafter: bool = False
    """whether --drafter-path is required"""
    options: tuple[str, ...] = ()
    """decoding options that the mode reads, see `reads`"""
    stands_for: tuple[str, ...] = ()
    """modes among which this mode chooses, by the given options and model"""

    def reads(self, option: str) -> bool:
        """Whether the mode reads a decoding option; others are refused."""
        return option in self.options


_COPYING = ("draft_file", "max_draft_len")
_BLOCK_OPTIONS = ("drafter_path", "block_size")
_CRITERION_OPTIONS = ("top_beta", "tolerance")
_BLOCK_CRITERION_OPTIONS = (*_CRITERION_OPTIONS, "accept_distance", "min_block")
"""not read by `iad++`: a shorter draft would replace a word of the input that is to stay by the model's own"""
_ARITHMETIC = ("int8", "bit_exact")

MODES: dict[str, Mode] = {}
"""all modes by name"""


def add(mode: Mode) -> None:
    """Add a row."""
    MODES[mode.name] = mode


for _mode in (
    Mode("beam", "fairseq's own search, unchanged", has_beam=True),
    Mode("greedy", "the output of --beam 1 by this plugin's engine", options=_ARITHMETIC),
    Mode(
        "iad",
        "the same output by Input-guided Aggressive Decoding, for tasks that mostly copy their input",
        COPIES,
        options=(*_COPYING, "drafts", *_ARITHMETIC),
    ),
    Mode(
        "iad++",
        "as iad, but keeps a word of the input that the model scores close to its own choice (--top-beta, --tolerance)",
        COPIES,
        "criterion",
        is_lossless=False,
        options=("draft_file", *_CRITERION_OPTIONS, "int8"),
    ),
    Mode(
        "gad",
        "the output of --beam 1 by Generalized Aggressive Decoding with --drafter-path",
        BLOCK_MODEL,
        needs_drafter=True,
        options=(*_BLOCK_OPTIONS, "drafts", *_ARITHMETIC),
    ),
    Mode(
        "gad++",
        "as gad, faster, with nearly the same output: accepts draft tokens close to the verifier's own choice "
        "(--top-beta, --tolerance)",
        BLOCK_MODEL,
        "criterion",
        is_lossless=False,
        needs_drafter=True,
        options=(*_BLOCK_OPTIONS, *_BLOCK_CRITERION_OPTIONS, "int8"),
    ),
    Mode(
        "speculative",
        "the output of --beam 1, drafted token by token by an ordinary, smaller model with the same target dictionary, "
        "--drafter-path",
        SMALL_MODEL,
        needs_drafter=True,
        options=(*_BLOCK_OPTIONS, "drafts", *_ARITHMETIC),
    ),
    Mode(
        "nar",
        "the drafter's own output, unverified",
        BLOCK_MODEL,
        "none",
        is_lossless=False,
        options=(*_BLOCK_OPTIONS, "int8"),
    ),
    Mode(
        "blockwise",
        "the output of --beam 1 by a model that drafts with its own proposal heads",
        HEADS,
        "criterion",
        options=("block_size", *_BLOCK_CRITERION_OPTIONS, *_ARITHMETIC),
    ),
    Mode(
        "aggressive",
        "a lossless mode: gad or speculative with --drafter-path, iad with --draft-file, else blockwise with proposal "
        "heads, else iad",
        options=(*_COPYING, *_BLOCK_OPTIONS, "drafts", *_ARITHMETIC),
        stands_for=("gad", "speculative", "blockwise", "iad"),
    ),
    Mode(
        "aggressive-beam",
        "the n-best list of fairseq's beam search with any --beam, in less time",
        BLOCK_MODEL,
        has_beam=True,
        options=(*_BLOCK_OPTIONS, "int8"),
    ),
):
    add(_mode)


def readers(option: str) -> list[str]:
    """The modes that read an option."""
    return [name for name, mode in MODES.items() if mode.reads(option)]


def modes_help() -> str:
    """The help text of --decoding."""
    return "; ".join(f"{name}: {mode.help}" for name, mode in MODES.items())


def help_of(option: str, text: str) -> str:
    """The help text of an option, preceded by the modes that read it."""
    return f"{', '.join(readers(option))}: {text}"
