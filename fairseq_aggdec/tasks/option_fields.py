"""The options of the decoding modes, as plain dataclasses: `aggdec decode --help` lists them and loads no fairseq."""

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import dataclass, field
from typing import Optional

MODES = [
    "beam",
    "greedy",
    "iad",
    "iad++",
    "gad",
    "gad++",
    "nar",
    "blockwise",
    "hybrid",
    "aggressive",
    "aggressive-beam",
]
MODES_HELP = (
    "beam: fairseq's own search, unchanged; greedy: the output of --beam 1 by this plugin's engine; "
    "iad: the same output by Input-guided Aggressive Decoding, for tasks that mostly copy their input; "
    "iad++: keeps the input where the model is not sure of another word (--top-beta, --tolerance); gad: the "
    "output of --beam 1 by Generalized Aggressive Decoding with --drafter-path; gad++: nearly the same and "
    "sooner, as it keeps draft tokens that the verifier finds good enough (--top-beta, --tolerance); nar: "
    "the drafter's own output, unverified; blockwise: the output of --beam 1 by a model with proposal heads, "
    "which drafts itself; hybrid: the output of --beam 1 with drafts copied as in iad where the output follows "
    "its input, and made by --drafter-path or the model's proposal heads, or guessed, where it does not; "
    "aggressive: a lossless mode by what is given: gad with --drafter-path, else blockwise where the model "
    "has heads, else iad; aggressive-beam: the n-best list of beam, by any --beam, sooner"
)


@dataclass
class CopyingOptions:
    """Options of a task, for the command line and for hydra."""

    max_draft_len: int = field(
        default=0,
        metadata={"help": "iad, hybrid: longest draft, in tokens (L_max of Sun et al. 2021, Table 3); 0: no limit"},
    )
    min_suffix: int = field(
        default=1,
        metadata={
            "help": "iad, hybrid: shortest output suffix, in tokens, that is looked up in the source; where only a "
            "shorter one is found, hybrid drafts with its model, and copies on where this draft makes it long enough"
        },
    )
    max_suffix: int = field(
        default=0,
        metadata={"help": "iad, hybrid: longest output suffix, in tokens, that is looked up; 0: no limit"},
    )


@dataclass
class AcceptanceOptions:
    """Options of a task, for the command line and for hydra."""

    top_beta: Optional[int] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={
            "help": "gad++, iad++, blockwise: accept a draft token that is among this many best ones of the verifier: "
            "beta of Ge et al. 2022, Eq. 8 (gad++, iad++: 3 unless given, and 5 in their high-efficiency setting; "
            "blockwise: no limit, and only the best one without --tolerance, too)"
        },
    )
    tolerance: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "gad++, iad++, blockwise: accept a draft token whose log-probability is below the best token's by "
            "at most this: tau of Ge et al. 2022, Eq. 9 (gad++, iad++: 1.0 unless given, and 3.0 in their "
            "high-efficiency setting; blockwise: no limit)"
        },
    )
    eos_argmax: bool = field(
        default=False,
        metadata={
            "help": "gad++, iad++, blockwise: accept a drafted end of sentence only where it is the verifier's choice"
        },
    )
    accept_distance: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "gad++, blockwise: for outputs that are numbers, such as intensities: accept a draft token whose "
            "number differs from the verifier's by at most this"
        },
    )
    min_block: int = field(
        default=0,
        metadata={"help": "gad++, blockwise: commit at least this many tokens in an iteration, accepted or not"},
    )


@dataclass
class DraftingOptions(AcceptanceOptions):
    """Options of a task, for the command line and for hydra."""

    drafter_path: Optional[str] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None,
        metadata={
            "help": "gad, gad++, nar, hybrid, aggressive-beam: checkpoint of the block drafter; --path is the verifier"
        },
    )
    block_size: int = field(
        default=0,
        metadata={
            "help": "gad, gad++, nar, hybrid, aggressive-beam: number of tokens drafted at once; blockwise, and hybrid "
            "with proposal heads: number of heads used, head 1 included (default: what the drafter's "
            "checkpoint says, or all heads)"
        },
    )
    full_drafts: bool = field(
        default=False,
        metadata={
            "help": "iad, gad, hybrid: always verify whole drafts; without this option they are shortened, or left "
            "out, where that saves time: on a CPU in batches and with large models, in hybrid always"
        },
    )
    adaptive_draft: bool = field(
        default=False,
        metadata={
            "help": "iad, iad++, gad, gad++, blockwise, hybrid: at every batch size, draft only as many tokens, or "
            "none, as save time by the acceptance rate so far; a lossless mode keeps its output. It helps on a CPU "
            "with a drafter that is seldom right, and not with a good drafter or on a GPU"
        },
    )


@dataclass
class ArithmeticOptions:
    """Options of a task, for the command line and for hydra."""

    int8: bool = field(
        default=False,
        metadata={
            "help": "multiply 8-bit integers, on a CPU: faster, with nearly the same output. A lossless mode then has "
            "the output of --decoding greedy --int8. (fairseq's --bf16 does the same with bfloat16)"
        },
    )
    bit_exact: bool = field(
        default=False,
        metadata={
            "help": "lossless modes: the same tokens and scores, to the last bit, in all these modes and in every "
            "batch; refused on a device that cannot promise it"
        },
    )


def take_block_sizes_of_at_least_one(parser: ArgumentParser) -> None:
    """Make the command line refuse --block-size 0, which in a configuration stands for the default."""
    next(action for action in parser._actions if action.dest == "block_size").type = _at_least_one


def _at_least_one(word: str) -> int:
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{word}: must be a whole number of at least 1")
    return number
