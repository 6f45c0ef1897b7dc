"""The table of decoding modes. Argument parsers read it, so it imports neither fairseq nor torch.

To add a mode, add a row (`add`) and, for a new drafter, an entry of `generation.drafting.DRAFTERS`
(docs/CONTRIBUTING.md).
"""

from dataclasses import dataclass
from typing import Literal

BEAM = "beam"
GREEDY = "greedy"
IAD = "iad"
IAD_PLUS = "iad++"
GAD = "gad"
GAD_PLUS = "gad++"
SPECULATIVE = "speculative"
NAR = "nar"
BLOCKWISE = "blockwise"
AGGRESSIVE = "aggressive"
AGGRESSIVE_BEAM = "aggressive-beam"
"""names of the modes; see `MODES` for what each does"""
COPIES = "copies"
BLOCK_MODEL = "a block drafter"
SMALL_MODEL = "an ordinary model"
HEADS = "proposal heads"
"""drafters, as messages call them: the source is copied, the model of --drafter-path drafts, or the verifier's heads"""
DRAFTS = ("auto", "whole")
"""values of --drafts"""
COPY_RULES = ("resync", "paper")
"""values of --copies"""
CHOICES = {"drafts": DRAFTS, "copies": COPY_RULES}
"""fields of `Decoding` that take one of a few values"""


@dataclass(frozen=True)
class Mode:
    """One value of --decoding."""

    name: str
    help: str
    drafter: str | None = None
    """a key of `generation.drafting.DRAFTERS`; None: nothing is drafted"""
    acceptance: Literal["exact", "criterion", "none"] = "exact"
    """draft tokens that pass: the verifier's choices, those that a criterion accepts, or all, without a verifier"""
    is_lossless: bool = True
    """whether the output equals that of fairseq's search, unless an option of acceptance is given"""
    has_beam: bool = False
    """whether the beam has the size of --beam; else 1"""
    needs_drafter: bool = False
    """whether --drafter-path is required"""
    options: tuple[str, ...] = ()
    """fields of `Decoding` that the mode reads, of those that only some modes read"""
    alternatives: tuple[str, ...] = ()
    """modes among which this mode chooses, by the given options and model"""

    def reads(self, option: str) -> bool:
        """Whether the mode reads a field of `Decoding`; others are refused."""
        return option in self.options

    @property
    def is_fairseqs(self) -> bool:
        """Whether fairseq's own search decodes."""
        return self.name == BEAM

    @property
    def is_greedy(self) -> bool:
        """Whether this plugin decodes token by token, without drafts: the measure of the other modes' speed."""
        return self.name == GREEDY

    @property
    def copies(self) -> bool:
        """Whether drafts are copied from the source or from a user's draft."""
        return self.drafter == COPIES

    @property
    def drafts_by_model(self) -> bool:
        """Whether the model of --drafter-path drafts."""
        return self.drafter in (BLOCK_MODEL, SMALL_MODEL)

    @property
    def verifies(self) -> bool:
        """Whether a verifier judges the drafts."""
        return self.acceptance != "none"

    def resolve(self, drafter: str) -> "Mode":
        """The alternative with a drafter of this kind; a mode without alternatives is itself."""
        found = (
            MODES[name] for name in self.alternatives if MODES[name].drafter == drafter
        )
        return next(found, self)


_COPYING = ("draft_file", "max_draft_len", "copies")
_BLOCK_OPTIONS = ("drafter", "block_size")
CRITERION_OPTIONS = ("top_beta", "tolerance")
_BLOCK_CRITERION_OPTIONS = (*CRITERION_OPTIONS, "accept_distance", "min_block")
"""not read by `iad++`: a shorter draft would replace a word of the input that is to stay by the model's"""
_ARITHMETIC = ("int8", "bit_exact")

MODES: dict[str, Mode] = {}
"""all modes by name"""


def add(mode: Mode) -> None:
    """Add a row."""
    MODES[mode.name] = mode


for _mode in (
    Mode(BEAM, "fairseq's own search, unchanged", has_beam=True),
    Mode(GREEDY, "the output of --beam 1 by this plugin's engine", options=_ARITHMETIC),
    Mode(
        IAD,
        "the output of --beam 1 by Input-guided Aggressive Decoding (Ge et al. 2022, sec. 3.1), which copies the "
        "input, for tasks that keep most of it",
        COPIES,
        options=(*_COPYING, "drafts", *_ARITHMETIC),
    ),
    Mode(
        IAD_PLUS,
        "as iad, but keeps a word of the input that the model scores close to its own choice (--top-beta, "
        "--tolerance); after a correction the model chooses every word until the output matches the input again",
        COPIES,
        "criterion",
        is_lossless=False,
        options=("draft_file", *CRITERION_OPTIONS, "int8"),
    ),
    Mode(
        GAD,
        "the output of --beam 1 by Generalized Aggressive Decoding (Ge et al. 2022, sec. 3.2) with --drafter-path",
        BLOCK_MODEL,
        needs_drafter=True,
        options=(*_BLOCK_OPTIONS, "drafts", *_ARITHMETIC),
    ),
    Mode(
        GAD_PLUS,
        "as gad, faster, with nearly the same output: accepts draft tokens close to the verifier's own choice "
        "(--top-beta, --tolerance; Ge et al. 2022, sec. 3.2.3)",
        BLOCK_MODEL,
        "criterion",
        is_lossless=False,
        needs_drafter=True,
        options=(*_BLOCK_OPTIONS, *_BLOCK_CRITERION_OPTIONS, "int8"),
    ),
    Mode(
        SPECULATIVE,
        "the output of --beam 1, drafted token by token by --drafter-path, an ordinary, smaller model with the same "
        "dictionaries",
        SMALL_MODEL,
        needs_drafter=True,
        options=(*_BLOCK_OPTIONS, "drafts", *_ARITHMETIC),
    ),
    Mode(
        NAR,
        "the drafter's own output, unverified (Ge et al. 2022, Table 5)",
        BLOCK_MODEL,
        "none",
        is_lossless=False,
        options=(*_BLOCK_OPTIONS, "int8"),
    ),
    Mode(
        BLOCKWISE,
        "the output of --beam 1 by Blockwise Parallel Decoding (Stern et al. 2018), for a model with proposal heads",
        HEADS,
        "criterion",
        options=("block_size", *_BLOCK_CRITERION_OPTIONS, *_ARITHMETIC),
    ),
    Mode(
        AGGRESSIVE,
        "a lossless mode: gad or speculative with --drafter-path, by the kind of drafter, iad with --draft-file, else "
        "blockwise with proposal heads, else iad",
        options=(*_COPYING, *_BLOCK_OPTIONS, "drafts", *_ARITHMETIC),
        alternatives=(GAD, SPECULATIVE, BLOCKWISE, IAD),
    ),
    Mode(
        AGGRESSIVE_BEAM,
        "the n-best list of fairseq's beam search with any --beam; in fewer passes of a large model where outputs are "
        "copies of their inputs",
        has_beam=True,
        options=("int8",),
    ),
):
    add(_mode)


def readers(option: str) -> list[str]:
    """The modes that read an option."""
    return [name for name, mode in MODES.items() if mode.reads(option)]


def modes_help() -> str:
    """The help text of --decoding."""
    return "; ".join(f"{name}: {mode.help}" for name, mode in MODES.items())
