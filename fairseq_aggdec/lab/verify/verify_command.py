"""Runs `aggdec verify`: from its options to its record."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafter_checkpoint import kind_of
from fairseq_aggdec.generation.modes import COPIES, HEADS, MODES
from fairseq_aggdec.lab.bench.modes import CUT, WHOLE, ModeSpec, parse_modes
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject, chosen_subject
from fairseq_aggdec.lab.verify.references import EXACT
from fairseq_aggdec.lab.verify.verification import Verification, verify
from fairseq_aggdec.models.blockwise_transformer import proposal_heads

_SENTENCES = 20
_THOROUGH_SENTENCES = 100
_RANDOM_SENTENCES = 8
_RANDOM_MODES = "greedy,iad,gad,gad++,aggressive-beam:5"


def run(args: Any, command: str) -> Verification:
    """Verify what the options ask for, and say beforehand on stderr what will be decoded.

    `args` are already checked; `command` is the command line, for the record.

    Raises:
        AggdecError: files or options cannot be used.
    """
    sizes = args.batch_sizes or ([1, 8, 32] if args.thorough else [1, 8])
    precisions = args.precisions or _precisions(
        args.device, args.thorough, args.bit_exact
    )
    given = _RANDOM_MODES if args.modes is None and args.random_model else args.modes
    modes = [] if given is None else _modes(given)
    sentences = _THOROUGH_SENTENCES if args.thorough else _SENTENCES
    if args.random_model:
        sentences = _RANDOM_SENTENCES
    with chosen_subject(args, modes, sentences) as subject:
        if not subject.sentences:
            raise AggdecError(
                f"{subject.name}: has no sentence; name another split by --gen-subset"
            )
        modes = modes or _modes(_default_modes(subject))
        if args.random_model:
            subject = _uneven(subject)
            modes = [mode.having(drafts="whole") for mode in modes]
        batches = ["alone" if size == 1 else f"in batches of {size}" for size in sizes]
        counts = (("sentence", len(subject.sentences)), ("mode", len(modes)))
        counted = [f"{count} {name}{'s' * (count != 1)}" for name, count in counts]
        print(", ".join([*counted, *precisions, *batches]), file=sys.stderr)
        return verify(
            subject, modes, precisions, sizes, args.precisions is not None, command
        )


def _precisions(device: str, thorough: bool, bit_exact: bool | None) -> list[str]:
    """The precisions to compare where --precisions does not say: without --thorough fp32, as in fairseq-generate."""
    lower = ["int8"] if device == "cpu" else ["fp16", "bf16"]
    return [
        "fp32",
        *lower * thorough,
        *[EXACT] * (thorough if bit_exact is None else bit_exact),
    ]


def _modes(names: str) -> list[ModeSpec]:
    """The modes to compare.

    Raises:
        AggdecError: a mode has a precision in its name, or belongs to another program.
    """
    modes = parse_modes(names)
    for mode in modes:
        if mode.search != mode.name:
            raise AggdecError(
                f"--modes {mode.name}: name precisions by --precisions, which all modes are decoded in"
            )
        if mode.implementation != "fairseq_aggdec":
            raise AggdecError(
                f"--modes {mode.name}: only this plugin's modes are compared, with fairseq's search"
            )
    return modes


def _default_modes(subject: Subject) -> str:
    """All modes that the model can be decoded in; on a CPU, where drafts are cut, with whole drafts, too."""
    drafters: set[str | None] = {None, COPIES}
    with Runs(subject) as runs:
        task, models = runs.load("fp32")
        if subject.drafter_path:
            drafters.add(kind_of(task.load_drafter(subject.drafter_path, models)))
    if any(proposal_heads(model) > 0 for model in models):
        drafters.add(HEADS)
    names = [
        name
        for name, mode in MODES.items()
        if mode.drafter in drafters
        and (mode.is_lossless or mode.needs_drafter)
        and not mode.has_beam | bool(mode.alternatives)
    ]
    whole = [
        f"{name}{WHOLE}" for name in names if name in CUT and subject.device == "cpu"
    ]
    return ",".join([*names, "aggressive-beam:5", *whole])


def _uneven(subject: Subject) -> Subject:
    """Cut the sentences of a random model, and its outputs, to different lengths, so that rows leave their batches."""
    sentences: list[Sequence[int]] = []
    for index, sentence in enumerate(subject.sentences):
        *words, end = sentence
        length = 1 + (len(words) - 1 + 7 * index) % len(words)
        sentences.append([*words[:length], end])
    return replace(subject, sentences=sentences, search={"match_source_len": True})
