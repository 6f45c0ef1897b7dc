"""Runs `aggdec verify`: from its options to its report."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fairseq.data import Dictionary

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.measure import random_subject
from fairseq_aggdec.lab.benchmarking.modes import CUT, WHOLE, Mode, parse_modes
from fairseq_aggdec.lab.benchmarking.subject import Runners, Subject, read_subject
from fairseq_aggdec.lab.lossless.verification import EXACT, default_precisions, verify
from fairseq_aggdec.lab.lossless.verification_report import Report
from fairseq_aggdec.models.blockwise_transformer import proposal_heads

_SENTENCES, _THOROUGH_SENTENCES, _RANDOM_SENTENCES = 20, 100, 8
_BATCH_SIZES, _THOROUGH_BATCH_SIZES = [1, 8], [1, 8, 32]
_RANDOM_MODES = "greedy,iad,gad,gad++,aggressive-beam:5"


@dataclass(frozen=True)
class _Extent:
    """How much is verified of a model, apart from the modes."""

    sentences: int
    precisions: list[str]
    batch_sizes: list[int]

    @classmethod
    def of(cls, args: argparse.Namespace, thorough: bool) -> "_Extent":
        """What the options ask for, and where they leave it open, little or all (`thorough`)."""
        sentences = _RANDOM_SENTENCES if args.random_model else _THOROUGH_SENTENCES if thorough else _SENTENCES
        bit_exact = thorough if args.bit_exact is None else args.bit_exact
        # without an option, fairseq-generate computes in fp32, also on a GPU and with a model trained in fp16
        open_ones = default_precisions(args.device) if thorough else ["fp32", EXACT]
        return cls(
            args.limit or sentences,
            args.precisions or [name for name in open_ones if bit_exact or name != EXACT],
            args.batch_sizes or (_THOROUGH_BATCH_SIZES if thorough else _BATCH_SIZES),
        )


def run(args: argparse.Namespace, command: str) -> Report:
    """Verify what the options ask for, and say beforehand on stderr what will be decoded.

    Args:
        args: the options of `aggdec verify`, already checked.
        command: the command line, for the report.

    Raises:
        AggdecError: files or options cannot be used.
    """
    extent = _Extent.of(args, args.thorough)
    args.limit = extent.sentences
    given = None if args.modes is None else _modes(args.modes)
    with TemporaryDirectory(prefix="aggdec-verify-") as folder:
        if args.random_model:
            modes = given or _modes(_RANDOM_MODES)
            subject = _uneven(random_subject(args, modes, Path(folder)))
            title = f"random {args.random_model} model, weights of {args.trained_in}"
            symbols = Dictionary.load(f"{subject.data}/dict.{subject.target_lang}.txt").symbols
        else:
            subject, task = read_subject(args)
            symbols = task.target_dictionary.symbols
            modes = given or _modes(_default_modes(subject, cut=args.drafts is None))
            title = f"{args.gen_subset} of {args.data} by {args.path}"
        if not subject.sentences:
            raise AggdecError(f"{title}: has no sentence; name another split by --gen-subset")
        drafts = args.drafts or ("whole" if args.random_model else "auto")
        subject = replace(subject, drafts=drafts)
        print(_announcement(subject, modes, extent), file=sys.stderr)
        must_run = args.precisions is not None
        done = verify(subject, modes, extent.precisions, extent.batch_sizes, must_run)
    title = f"{title}, {len(subject.sentences)} sentences, {subject.device}"
    return Report(title, command, done, symbols, dict(subject.generation))


def _announcement(subject: Subject, modes: Sequence[Mode], extent: _Extent) -> str:
    """What is decoded: `20 sentences, 6 modes, fp32, alone, in batches of 8`."""
    batches = ["alone" if size == 1 else f"in batches of {size}" for size in extent.batch_sizes]
    counts = (("sentence", len(subject.sentences)), ("mode", len(modes)))
    return ", ".join([*(f"{n} {name}{'s' * (n != 1)}" for name, n in counts), *extent.precisions, *batches])


def _modes(names: str) -> list[Mode]:
    """The modes to compare.

    Raises:
        AggdecError: a mode has a precision in its name, or belongs to another program.
    """
    modes = parse_modes(names)
    for mode in modes:
        if mode.precision is not None:
            raise AggdecError(f"--modes {mode.name}: name precisions by --precisions, which all modes are decoded in")
        if mode.implementation != "fairseq_aggdec":
            raise AggdecError(f"--modes {mode.name}: only this plugin's modes are compared, with fairseq's search")
    return modes


def _default_modes(subject: Subject, cut: bool) -> str:
    """All modes that the model can be decoded in.

    Args:
        subject: what is decoded.
        cut: whether modes whose drafts are cut are to verify whole ones, too, where a cut one may have no token.
    """
    with Runners(subject) as runners:
        _, models = runners.load("fp32")
    drafter = ["gad", "gad++"] if subject.drafter_path else []
    heads = ["blockwise"] if any(proposal_heads(model) > 0 for model in models) else []
    names = ["greedy", "iad", *drafter, *heads, "aggressive-beam:5"]
    whole = [f"{name}{WHOLE}" for name in names if name in CUT and cut and subject.device == "cpu"]
    return ",".join([*names, *whole])


def _uneven(subject: Subject) -> Subject:
    """Cut the sentences of a random model, and its outputs, to different lengths, so that rows leave their batches."""
    sentences: list[Sequence[int]] = []
    for number, sentence in enumerate(subject.sentences):
        *words, end = sentence
        sentences.append([*words[: 1 + (len(words) - 1 + 7 * number) % len(words)], end])
    return replace(subject, sentences=sentences, generation={"match_source_len": True})
