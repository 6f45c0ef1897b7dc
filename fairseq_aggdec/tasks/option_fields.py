"""The options of the decoding modes, as plain dataclasses: `aggdec decode --help` lists them and loads no fairseq."""

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq_aggdec.generation.modes import DRAFTS, MODES, help_of


def _option(name: str, default: Any, text: str) -> Any:
    """The field of an option that some modes read."""
    return field(default=default, metadata={"help": help_of(name, text)})


@dataclass
class CopyingOptions:
    """Options of a task, for the command line and for hydra."""

    max_draft_len: int = _option(
        "max_draft_len",
        0,
        "longest draft, in tokens (L_max of Sun et al. 2021, Table 3); 0: no limit",
    )


@dataclass
class AcceptanceOptions:
    """Options of a task, for the command line and for hydra."""

    top_beta: Optional[int] = _option(  # noqa: UP045 (fairseq reads the annotation)
        "top_beta",
        None,
        "accept a draft token that is among this many best ones of the verifier: beta of Ge et al. 2022, Eq. 8 "
        "(gad++, iad++: 3 unless given, and 5 in their high-efficiency setting; blockwise: no limit, and only "
        "the best one without --tolerance, too)",
    )
    tolerance: Optional[float] = _option(  # noqa: UP045
        "tolerance",
        None,
        "accept a draft token whose log-probability is below the best token's by at most this: tau of Ge et "
        "al. 2022, Eq. 9 (gad++, iad++: 1.0 unless given, and 3.0 in their high-efficiency setting; "
        "blockwise: no limit)",
    )
    accept_distance: Optional[float] = _option(  # noqa: UP045
        "accept_distance",
        None,
        "for outputs that are numbers, such as intensities: accept a draft token whose number differs from the "
        "verifier's by at most this",
    )
    min_block: int = _option(
        "min_block",
        0,
        "commit at least this many tokens in an iteration, accepted or not",
    )


@dataclass
class DraftingOptions(AcceptanceOptions):
    """Options of a task, for the command line and for hydra."""

    drafter_path: Optional[str] = _option(  # noqa: UP045 (fairseq reads the annotation)
        "drafter_path",
        None,
        "checkpoint of the block drafter; --path is the verifier",
    )
    block_size: int = _option(
        "block_size",
        0,
        "number of tokens drafted at once; with proposal heads the number of heads used, head 1 included "
        "(default: what the drafter's checkpoint says, or all heads)",
    )
    drafts: str = _option(
        "drafts",
        "auto",
        "how much of the drafts is verified. auto: on a CPU, in batches and with large models, as many tokens "
        "as save time by the acceptance rate so far, otherwise whole drafts; whole: always whole drafts",
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


def narrow_options(parser: ArgumentParser) -> None:
    """Let a parser refuse other values of --decoding and --drafts, and --block-size 0, which stands for the default."""
    actions = {action.dest: action for action in parser._actions}
    actions["block_size"].type = _at_least_one
    actions["drafts"].choices = DRAFTS
    actions["decoding"].choices = list(MODES)


def _at_least_one(word: str) -> int:
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{word}: must be a whole number of at least 1")
    return number
