"""How to decode: the options of this plugin beside fairseq's own.

fairseq's tasks and `aggdec decode` make command line options of `Decoding` and print its help texts, so this file
imports neither fairseq nor torch.
"""

from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from fairseq_aggdec.engine.arithmetic import Arithmetic, Precision
from fairseq_aggdec.errors import option_name, refuse_all, too_small
from fairseq_aggdec.generation.modes import (
    AGGRESSIVE,
    BEAM,
    BLOCK_MODEL,
    CHOICES,
    COPIES,
    COPY_RULES,
    DRAFTS,
    HEADS,
    MODES,
    SMALL_MODEL,
    Mode,
    modes_help,
    readers,
)

HIGH_QUALITY = (3, 1.0)
"""top-beta and tolerance of papers/000's high-quality setting, the default of `gad++` and `iad++`"""


def _option(
    default: Any, text: str, name: str | None = None, names_modes: bool = False
) -> Any:
    """A field that is an option of the command line.

    `name`: its name there, if that is not the field's; `names_modes`: whether the text says which modes read it.
    """
    return field(
        default=default,
        metadata={"help": text, "name": name, "names_modes": names_modes},
    )


@dataclass(frozen=True)
class Decoding:
    """How to decode. Fields without a help text are fairseq's options."""

    mode: str = _option(BEAM, modes_help(), "decoding")
    block_ngrams: bool = _option(
        False,
        "make --no-repeat-ngram-size work where fairseq's search ignores it (without its CUDA extension)",
    )
    stats: str | None = _option(
        None,
        "write a JSON line for each sentence to this file: iterations, drafted, accepted, ...",
        "decoding_stats",
    )
    draft_file: str | None = _option(
        None,
        "drafts to copy in place of the source: a line for each sentence of the data set, in the output's subwords",
    )
    max_draft_len: int = _option(
        0, "longest draft, in tokens (L_max of Sun et al. 2021, Table 3); 0: no limit"
    )
    copies: str = _option(
        COPY_RULES[0],
        "where a copy continues after an edit. resync: at once, at the likeliest place; paper: as soon as the output's "
        "last tokens stand in the source exactly once (Ge et al. 2022, Algorithm 1)",
    )
    top_beta: int | None = _option(
        None,
        "accept a draft token up to this rank of the verifier's scores: beta of Ge et al. 2022, Eq. 8 "
        "(default of gad++ and iad++: 3; 5 in the paper's high-efficiency setting; default of blockwise: no limit "
        "with --tolerance, else 1)",
    )
    tolerance: float | None = _option(
        None,
        "accept a draft token if its log-probability is at most this far below the best token's: tau of Ge et "
        "al. 2022, Eq. 9 (default of gad++ and iad++: 1.0; 3.0 in the paper's high-efficiency setting; default of "
        "blockwise: no limit)",
    )
    accept_distance: float | None = _option(
        None,
        "for outputs that are numbers, such as intensities: accept a draft token that differs from the verifier's "
        "by at most this",
    )
    min_block: int = _option(
        0, "commit at least this many tokens in an iteration, accepted or not"
    )
    drafter: str | None = _option(
        None,
        "checkpoint of the drafter, for speculative an ordinary model, else a block drafter; --path is the verifier",
        "drafter_path",
    )
    block_size: int = _option(
        0,
        "number of tokens of a draft, by a block drafter at most as in its training; with proposal heads the number "
        "of heads used, head 1 included (default: the value in the block drafter's checkpoint, 4 by an ordinary model, "
        "or all heads)",
    )
    drafts: str = _option(
        DRAFTS[0],
        "how much of the drafts is verified. auto: on a CPU as many tokens as save the most time by the acceptance "
        "rate so far, none where they save none, on a GPU whole drafts; whole: always whole drafts",
    )
    int8: bool = _option(
        False,
        "multiply 8-bit integers, on a CPU: faster, with nearly the same output. A lossless mode then has "
        "the output of --decoding greedy --int8. (fairseq's --bf16, on a GPU, does the same with bfloat16)",
        names_modes=True,
    )
    bit_exact: bool = _option(
        False,
        "lossless modes: the same tokens and scores, to the last bit, in all these modes and in every "
        "batch. In single precision or --int8 on a CPU, in --fp16 on a GPU; refused where kernels are missing",
        names_modes=True,
    )
    fp16: bool = False
    bf16: bool = False
    on_gpu: bool = False
    """whether a GPU decodes, where that is known"""

    @classmethod
    def from_args(cls, args: Any, **others: Any) -> "Decoding":
        """The options in a namespace, by their names on the command line; absent ones and None have their defaults."""
        values = {
            option.name: getattr(args, name_of(option), None) for option in fields(cls)
        }
        return cls(
            **{name: value for name, value in values.items() if value is not None}
            | others
        )

    def options(self) -> dict[str, Any]:
        """The options that differ from their defaults, by their names on the command line."""
        values = {
            option: getattr(self, option.name)
            for option in fields(self)
            if option.name != "on_gpu"
        }
        return {
            name_of(option): value
            for option, value in values.items()
            if value != option.default
        }

    @property
    def row(self) -> Mode:
        """The mode's row in the table of modes."""
        return MODES[self.mode]

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the engine: by --int8, --bf16 and --bit-exact."""
        precision: Precision = "int8" if self.int8 else "bf16" if self.bf16 else "model"
        return Arithmetic(precision, self.bit_exact)

    @property
    def criterion(self) -> tuple[int | None, float | None]:
        """top-beta and tolerance; None: no limit. Without either, only the verifier's choices pass, if lossless."""
        default = (None, None) if self.row.is_lossless else HIGH_QUALITY
        beta = default[0] if self.top_beta is None else self.top_beta
        return beta, default[1] if self.tolerance is None else self.tolerance

    @property
    def accepts_others(self) -> bool:
        """Whether draft tokens pass that are not the verifier's choices, apart from `min_block`."""
        beta, tolerance = self.criterion
        is_off = beta == 1 or tolerance == 0 or (beta is None and tolerance is None)
        return self.accept_distance is not None or not is_off

    @property
    def is_lossless(self) -> bool:
        """Whether the output is promised to be that of fairseq's search in the same precision."""
        return self.row.verifies and self.min_block <= 1 and not self.accepts_others

    def with_mode(self, mode: str, **changes: Any) -> "Decoding":
        """The same in another mode; a drafter, block size or file of drafts is left out where the mode reads none."""
        unread = [
            name
            for name in ("drafter", "block_size", "draft_file")
            if not MODES[mode].reads(name)
        ]
        return replace(
            self,
            mode=mode,
            **{name: getattr(Decoding, name) for name in unread} | changes,
        )

    def resolved(self, heads: int, drafter: str = BLOCK_MODEL) -> Mode:
        """The mode, or the one of its alternatives that decodes (`aggressive`).

        `heads`: how many proposal heads the model has; `drafter`: what --drafter-path holds, `BLOCK_MODEL` or
        `SMALL_MODEL`.
        """
        return self.row.resolve(
            drafter
            if self.drafter
            else HEADS
            if heads and not self.draft_file
            else COPIES
        )

    def check(self, heads: int | None = None, drafter: str | None = None) -> None:
        """Raise `AggdecError` for all `faults`."""
        refuse_all(self.faults(heads, drafter))

    def faults(self, heads: int | None = None, drafter: str | None = None) -> list[str]:
        """What makes no sense, does not go together, or is not read by the mode.

        `heads` and `drafter`: see `resolved`; None before the models are loaded.
        """
        if self.mode not in MODES:
            return [f"--decoding {self.mode}: choose from {', '.join(MODES)}"]
        return [
            *_faults_of_values(self),
            *_faults_of_precision(self),
            *_faults_of_mode(self, heads, drafter),
        ]


@dataclass(frozen=True)
class SearchOptions:
    """A beam search; names, meanings and defaults are those of fairseq-generate."""

    beam: int = 5
    lenpen: float = 1.0
    unkpen: float = 0.0
    max_len_a: float = 0.0
    max_len_b: int = 200
    min_len: int = 1
    no_repeat_ngram_size: int = 0
    temperature: float = 1.0


def _faults_of_values(decoding: Decoding) -> Iterable[str]:
    yield from too_small(
        decoding, 0, "max_draft_len", "tolerance", "accept_distance", "min_block"
    )
    yield from too_small(decoding, 1, "top_beta")
    for name, choices in CHOICES.items():
        if getattr(decoding, name) not in choices:
            yield f"{option_name(name)} {getattr(decoding, name)}: choose {' or '.join(choices)}"
    if decoding.block_size < 0:
        yield f"--block-size {decoding.block_size}: give at least 1, or leave it out for the default of the checkpoint"
    if decoding.draft_file is not None and decoding.drafter is not None:
        yield "--draft-file does not go with --drafter-path: a draft is from a file or from a model"
    if decoding.draft_file is not None and not Path(decoding.draft_file).exists():
        yield f"--draft-file {decoding.draft_file}: no such file; check the path"
    if decoding.accept_distance is not None and not (
        decoding.top_beta is None and decoding.tolerance is None
    ):
        yield "--accept-distance does not go with --top-beta and --tolerance: give one criterion"


def _faults_of_precision(decoding: Decoding) -> Iterable[str]:
    precisions = [
        option_name(name)
        for name in ("int8", "bf16", "fp16")
        if getattr(decoding, name)
    ]
    if len(precisions) > 1:
        yield f"{' and '.join(precisions)}: one precision at a time"
    elif decoding.bit_exact and (
        decoding.bf16 or (decoding.fp16 and not decoding.on_gpu)
    ):
        yield (
            f"--bit-exact {precisions[0]}: same bits need this plugin's kernels, which compute in single precision "
            "and in --int8 on a CPU, and in --fp16 on a GPU: leave one of the two out"
        )


def _faults_of_mode(
    decoding: Decoding, heads: int | None, drafter: str | None
) -> Iterable[str]:
    # options of other modes
    for option in fields(decoding):
        modes = readers(option.name)
        if (
            modes
            and getattr(decoding, option.name) != option.default
            and decoding.mode not in modes
        ):
            yield (
                f"{option_name(name_of(option))} is read by --decoding {', '.join(modes)} only, and not by "
                f"{decoding.mode}: leave it out"
            )

    # no drafter where the mode needs one
    mode = decoding.resolved(heads or 0, drafter or BLOCK_MODEL)
    if mode.needs_drafter and not decoding.drafter:
        yield f"--decoding {mode.name} needs a drafter: name its checkpoint with --drafter-path"
    nothing_reads_it = mode.copies and heads is not None
    if (
        decoding.block_size > 0
        and decoding.row.reads("block_size")
        and nothing_reads_it
    ):
        yield (
            f"--block-size {decoding.block_size} needs a drafter: name its checkpoint with --drafter-path, or leave it "
            "out"
        )

    # too few heads
    if mode.drafter == HEADS and heads == 0:
        yield (
            f"--decoding {mode.name} needs a model with proposal heads, and --path names none: train them with "
            "--arch blockwise_transformer --base-checkpoint"
        )
    elif mode.drafter == HEADS and heads is not None and decoding.block_size > heads:
        yield f"--block-size {decoding.block_size}: the model has {heads} heads; give no more"

    # a drafter of another kind
    if drafter is not None and mode.drafts_by_model and mode.drafter != drafter:
        right = MODES[AGGRESSIVE].resolve(drafter).name
        swapped = ". Are --path and --drafter-path swapped? --path takes the verifier"
        yield (
            f"--drafter-path {decoding.drafter}: {drafter}, not {mode.drafter}, which --decoding "
            f"{mode.name} takes; by this drafter decode with --decoding {right}"
            f"{swapped if drafter == SMALL_MODEL else ''}"
        )


def name_of(option: Field[Any]) -> str:
    """The name of a field's option on the command line, with underscores."""
    return option.metadata.get("name") or option.name


def help_of(option: Field[Any]) -> str | None:
    """The help text of a field of `Decoding`, preceded by the modes that read it; None: an option of fairseq."""
    modes = readers(option.name)
    text = option.metadata.get("help")
    return (
        f"{', '.join(modes)}: {text}"
        if modes and not option.metadata["names_modes"]
        else text
    )


def type_of(option: Field[Any]) -> tuple[type, bool]:
    """The type of a field's values, and whether None is one of them."""
    kind = get_type_hints(Decoding)[option.name]
    kinds = [part for part in get_args(kind) if part is not type(None)]
    return (kinds[0], True) if kinds else (kind, False)


def given_search_options(args: Any) -> dict[str, Any]:
    """The given options by fairseq's field names; empty for a command without these options."""
    values = {
        option.name: getattr(args, option.name, None)
        for option in fields(SearchOptions)[1:]
    }
    return {name: value for name, value in values.items() if value is not None}
