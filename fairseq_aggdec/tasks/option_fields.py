"""The options of the decoding modes as plain dataclasses, which `aggdec decode --help` reads without fairseq."""

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq_aggdec.generation.modes import DRAFTS, MODES, help_of


def _option(name: str, default: Any, text: str) -> Any:
    """A field for an option that some modes read."""
    return field(default=default, metadata={"help": help_of(name, text)})


@dataclass
class CopyingOptions:
    """Options of drafters that copy the source, or drafts of one's own."""

    draft_file: Optional[str] = _option(  # noqa: UP045 (fairseq reads the annotation)
        "draft_file",
        None,
        "drafts to copy in place of the source: a line for each sentence of the data set, in the output's subwords",
    )

    max_draft_len: int = _option(
        "max_draft_len",
        0,
        "longest draft, in tokens (L_max of Sun et al. 2021, Table 3); 0: no limit",
    )


@dataclass
class AcceptanceOptions:
    """Options that let other draft tokens pass than the verifier's own choices."""

    top_beta: Optional[int] = _option(  # noqa: UP045 (fairseq reads the annotation)
        "top_beta",
        None,
        "accept a draft token up to this rank of the verifier's scores: beta of Ge et al. 2022, Eq. 8 "
        "(default of gad++ and iad++: 3; 5 in the paper's high-efficiency setting; default of blockwise: no limit "
        "with --tolerance, else 1)",
    )
    tolerance: Optional[float] = _option(  # noqa: UP045
        "tolerance",
        None,
        "accept a draft token if its log-probability is at most this far below the best token's: tau of Ge et "
        "al. 2022, Eq. 9 (default of gad++ and iad++: 1.0; 3.0 in the paper's high-efficiency setting; default of "
        "blockwise: no limit)",
    )
    accept_distance: Optional[float] = _option(  # noqa: UP045
        "accept_distance",
        None,
        "for outputs that are numbers, such as intensities: accept a draft token that differs from the verifier's "
        "by at most this",
    )
    min_block: int = _option(
        "min_block",
        0,
        "commit at least this many tokens in an iteration, accepted or not",
    )


@dataclass
class DraftingOptions(AcceptanceOptions):
    """Options of drafting by a model, and of how much is verified."""

    drafter_path: Optional[str] = _option(  # noqa: UP045 (fairseq reads the annotation)
        "drafter_path",
        None,
        "checkpoint of the drafter, for speculative an ordinary model; --path is the verifier",
    )
    block_size: int = _option(
        "block_size",
        0,
        "number of tokens of a draft; with proposal heads the number of heads used, head 1 included "
        "(default: the value in the block drafter's checkpoint, 4 by an ordinary model, or all heads)",
    )
    drafts: str = _option(
        "drafts",
        "auto",
        "how much of the drafts is verified. auto: on a CPU, in batches and with large models, the number of tokens "
        "that saves the most time by the acceptance rate so far, otherwise whole drafts; whole: always whole drafts",
    )


@dataclass
class ArithmeticOptions:
    """Options of the engine's arithmetic."""

    int8: bool = field(
        default=False,
        metadata={
            "help": "multiply 8-bit integers, on a CPU: faster, with nearly the same output. A lossless mode then has "
            "the output of --decoding greedy --int8. (fairseq's --bf16, on a GPU, does the same with bfloat16)"
        },
    )
    bit_exact: bool = field(
        default=False,
        metadata={
            "help": "lossless modes: the same tokens and scores, to the last bit, in all these modes and in every "
            "batch. In single precision or --int8 on a CPU, in --fp16 on a GPU; refused where kernels are missing"
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
