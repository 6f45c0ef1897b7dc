"""Run fairseq's own tests with this plugin in place; bash scripts/fairseq_suite.sh starts it.

1. tests/test_sequence_generator.py, with this plugin's generators in place of fairseq's.
2. tests/test_binaries.py as it is, with the plugin registered.
3. The same with each `generate_main` decoding by greedy, iad and aggressive-beam, too: their hypotheses must be those
   of fairseq's search with the same beam, except at near-ties. What belongs to fairseq's search alone (`REFUSED`) is
   refused by name, which is right; --print-alignment, the default there, is then left out.

The last lines count what has passed, was refused by name, and has failed, as by any other refusal. The exit status is
1 where something failed.
"""

# ruff: noqa: N802, N815 (names of unittest)

import argparse
import os
import random
import sys
import unittest
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import fairseq_cli  # noqa: F401 (the installed one, and not the checkout's, which may not be compiled)
import torch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.version import __version__ as installed

from fairseq_aggdec import register
from fairseq_aggdec.errors import AggdecError, install_excepthook
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.lab.verify.differences import beam_gap_of, differences, gap_of
from fairseq_aggdec.tasks.aggressive import aggressive

ROOT = Path(__file__).resolve().parents[1]
GENERATORS = "tests/test_sequence_generator.py"
COMMANDS = "tests/test_binaries.py"
MODES: dict[str, list[str]] = {
    "greedy": ["--beam", "1"],
    "iad": ["--beam", "1"],
    "aggressive-beam": [],
}
"""the options of fairseq's search whose hypotheses a mode must have, by its name"""
ALIGNMENT = "--print-alignment"
REFUSED: dict[str, str] = {
    "DiverseBeamSearch": "search_strategy DiverseBeamSearch:",
    "DiverseSiblingsSearch": "search_strategy DiverseSiblingsSearch:",
    "SamplingSearch": "search_strategy Sampling:",
    "TestJitSequenceGenerator": "TorchScript cannot compile",
    ALIGNMENT: "cannot honour --print-alignment:",
    "--sampling": "cannot honour --sampling",
    "--diversity-rate": "cannot honour --diversity-rate:",
    "--retain-dropout": "cannot honour --retain-dropout:",
    "--task translation_lev": "IterativeRefinementGenerator:",
}
"""the refusals that are right: words of the test's name or options, and of the message"""
SCORES = 1e-4
"""absolute and relative tolerance for the scores of equal hypotheses"""


@dataclass
class Row:
    """What came of one part of the suite."""

    name: str
    passed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """number of tests or calls by the message of a refusal that is right"""
    left_out: Counter[str] = field(default_factory=Counter)
    """the same of what cannot run here: a skipped test, a part that the installed fairseq lacks, a search by chance"""
    failed: list[str] = field(default_factory=list)
    hypotheses: int = 0
    """number of lists of hypotheses that were compared"""
    near_ties: list[str] = field(default_factory=list)

    def add(self, what: str, error: BaseException) -> None:
        """Count what an error has ended."""
        # of a command line
        while isinstance(error, SystemExit) and error.__context__ is not None:
            error = error.__context__
        if isinstance(error, AggdecError):
            if any(
                asked in what and words in str(error)
                for asked, words in REFUSED.items()
            ):
                self.refused[str(error)] += 1
            else:
                self.failed.append(f"{what}: refused unexpectedly: {error}")
        elif isinstance(error, ImportError | unittest.SkipTest):
            self.left_out[f"{error} (fairseq {installed})"] += 1
        else:
            self.failed.append(f"{what}: {type(error).__name__}: {str(error).strip()}")

    @property
    def text(self) -> str:
        """One line of counts, then a line for each refusal, near-tie and failure."""
        counts = f"{self.passed} passed, {self.refused.total()} refused by name, {len(self.failed)} failed"
        if self.left_out:
            counts += f", {self.left_out.total()} left out"
        if self.hypotheses:
            counts += (
                f"; {self.hypotheses} outputs compared, {len(self.near_ties)} near-ties"
            )
        kinds = {"refused": self.refused, "left out": self.left_out}
        lines = [
            f"  {kind}, {count} times: {why}"
            for kind, found in kinds.items()
            for why, count in found.items()
        ]
        lines += [f"  {line}" for line in self.near_ties]
        lines += [f"  FAILED {line}" for line in self.failed]
        return "\n".join([f"{self.name}: {counts}", *lines])


class Result(unittest.TestResult):
    """Counts tests in a row; each begins from the same seed."""

    def __init__(self, row: Row, seed: int) -> None:
        super().__init__()
        self.row = row
        self._seed = seed
        self.running = ""
        """name of the test"""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.running = test.id()
        print(f"{self.row.name}: {self.running}", file=sys.stderr)
        random.seed(self._seed)
        torch.manual_seed(self._seed)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.row.passed += 1

    def addError(self, test: unittest.TestCase, error: Any) -> None:
        self.row.add(test.id(), error[1])

    addFailure = addError

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.row.left_out[reason] += 1


def in_place(
    models: Any, tgt_dict: Any, *rest: Any, **options: Any
) -> AggressiveGenerator:
    """The plugin's generator for the arguments of fairseq's."""
    kind = AggressiveBeamGenerator
    mode = "aggressive-beam"
    if options.get("beam_size", 1) == 1:
        kind = AggressiveGenerator
        mode = "iad"
    return kind.of(models, tgt_dict, *rest, src_dict=tgt_dict, decoding=mode, **options)


class Decoded(NamedTuple):
    """A call of a generator."""

    generator: SequenceGenerator
    models: Any
    sample: dict[str, Any]
    options: dict[str, Any]
    """what else was given, such as forced prefixes"""
    hypotheses: list[list[dict[str, Any]]]


@contextmanager
def recorded() -> Iterator[list[Decoded]]:
    """Within the block, keep what generators decode."""
    found: list[Decoded] = []
    generate = SequenceGenerator.generate

    def keeping(self: Any, models: Any, sample: dict[str, Any], **options: Any) -> Any:
        hypotheses = generate(self, models, sample, **options)
        found.append(Decoded(self, models, sample, options, hypotheses))
        return hypotheses

    with mock.patch.object(SequenceGenerator, "generate", keeping):
        yield found


def alone(decoded: Decoded, row: int) -> dict[str, Any]:
    """The sentence of a row as a batch, padded as it was, with its `options`."""

    def of_row(values: dict[str, Any]) -> dict[str, Any]:
        return {
            name: x[row : row + 1] if torch.is_tensor(x) else x
            for name, x in values.items()
        }

    return {
        "net_input": of_row(decoded.sample["net_input"]),
        "options": of_row(decoded.options),
    }


def compare(expected: Decoded, found: Decoded, row: Row) -> list[str]:
    """A line for each output that is not fairseq's; near-ties and the number of outputs go into the row.

    Raises `unittest.SkipTest` where fairseq's own search does not say the same twice.
    """
    stock = expected.generator
    rows = range(len(expected.hypotheses))
    samples = {number: alone(expected, number) for number in rows}

    def decode(sample: dict[str, Any], prefix: torch.Tensor | None) -> Any:
        options = (
            sample["options"]
            if prefix is None
            else {**sample["options"], "prefix_tokens": prefix}
        )
        return stock.generate(expected.models, sample, **options)

    gap = (
        gap_of(decode, samples)
        if stock.beam_size == 1
        else beam_gap_of(decode, samples, stock.search)
    )
    apart = differences(tokens_of(expected), tokens_of(found), gap)
    lines = {
        one.sentence: one.describe("ours", "fairseq", stock.tgt_dict.symbols)
        for one in apart
    }
    row.hypotheses += len(rows)
    row.near_ties += [lines.pop(one.sentence) for one in apart if one.near_tie]
    for number in set(rows) - {one.sentence for one in apart}:
        for ours, theirs in zip(
            found.hypotheses[number], expected.hypotheses[number], strict=True
        ):
            scores = [
                torch.as_tensor(one["score"]).float().cpu() for one in (ours, theirs)
            ]
            if not torch.allclose(*scores, rtol=SCORES, atol=SCORES):
                lines[number] = (
                    f"sentence {number}: score {scores[0]:.6f} where fairseq has {scores[1]:.6f}"
                )
    # what draws numbers while it decodes, such as layers by chance, is not twice the same
    if lines:
        again = stock.generate(expected.models, expected.sample, **expected.options)
        if scores_of(again) != scores_of(expected.hypotheses):
            raise unittest.SkipTest(
                f"{type(expected.models[0]).__name__}: fairseq's own search differs from itself"
            )
    return list(lines.values())


def scores_of(hypotheses: list[list[dict[str, Any]]]) -> list[float]:
    """The scores of all hypotheses of a batch."""
    return [float(one["score"]) for n_best in hypotheses for one in n_best]


def tokens_of(decoded: Decoded) -> dict[int, list[int]]:
    """The tokens of all hypotheses of each sentence, one behind the other."""
    return {
        number: [token for one in n_best for token in one["tokens"].tolist()]
        for number, n_best in enumerate(decoded.hypotheses)
    }


def with_modes(task: str) -> str:
    """The name of a task of fairseq with the plugin's modes, which is registered where it is not."""
    name = f"aggressive_{task}"
    if name not in TASK_REGISTRY:
        ours = aggressive(TASK_REGISTRY[task])
        register_task(name, dataclass=ours.config_class)(ours)
    return name


def by_modes(
    generate_main: Callable[..., Any], rows: dict[str, Row], result: Result
) -> Callable[..., Any]:
    """fairseq's `generate_main`, which then decodes by each mode, too; `rows`: by mode; `result`: of the run."""

    def decoded(
        data_dir: str, flags: list[str], *rest: Any, **named: Any
    ) -> list[Decoded]:
        with recorded() as found:
            generate_main(data_dir, flags, *rest, **named)
        return found

    def in_mode(
        mode: str, data_dir: str, flags: list[str], *rest: Any, **named: Any
    ) -> None:
        row, flags = rows[mode], [*flags, *MODES[mode]]
        task = dict(pairwise(flags)).get("--task", "translation")
        found = decoded(
            data_dir,
            [*flags, "--task", with_modes(task), "--decoding", mode],
            *rest,
            **named,
        )
        expected = decoded(data_dir, flags, *rest, **named)
        lines = [
            line
            for pair in zip(expected, found, strict=True)
            for line in compare(*pair, row)
        ]
        row.passed += not lines
        if lines:
            row.failed.append(
                f"{result.running} {' '.join(flags)}: {len(lines)} outputs differ, as in {lines[0]}"
            )

    def main(
        data_dir: str, extra_flags: list[str] | None = None, *rest: Any, **named: Any
    ) -> None:
        # an error is the test's own
        generate_main(data_dir, extra_flags, *rest, **named)
        flags = [ALIGNMENT] if extra_flags is None else list(extra_flags)
        without = [flag for flag in flags if flag != ALIGNMENT]
        for mode, row in rows.items():
            for asked in [flags] if without == flags else [flags, without]:
                try:
                    in_mode(mode, data_dir, asked, *rest, **named)
                except (Exception, SystemExit) as error:
                    row.add(f"{result.running} {' '.join(asked)}", error)

    return main


def run(
    name: str, result: Result, only: str, replaced: Callable[[Any], dict[str, Any]]
) -> None:
    """Run the tests of a file whose names have the word `only`, with some of its names `replaced`."""
    try:
        module = import_module(name.removesuffix(".py").replace("/", "."))
    except ImportError as error:
        why = f"the installed fairseq is {installed}: take its checkout, or install the checkout's (pip install -e)"
        result.row.failed.append(f"{name} cannot be imported: {error}; {why}")
        return
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{only}*"]
    # fairseq's commands print to stdout, where the counts belong
    with mock.patch.dict(vars(module), replaced(module)), redirect_stdout(sys.stderr):
        loader.loadTestsFromModule(module).run(result)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fairseq_suite.sh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="a checkout of fairseq"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="WORD",
        help="only tests that have this in their names",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="of the tests' random data (default: %(default)s)",
    )
    return parser.parse_args()


def main() -> None:
    install_excepthook()
    args = parse()
    for name in (GENERATORS, COMMANDS):
        if not (args.folder / name).is_file():
            raise AggdecError(
                f"{args.folder / name} is missing: FOLDER must be a checkout of fairseq, with its tests"
            )
    register()
    os.chdir(args.folder)  # the tests name parts of it by relative paths
    # this repository has `tests`, too
    others = [path for path in sys.path if Path(path).resolve() != ROOT]
    sys.path[:] = [os.getcwd(), *others]

    modes = {mode: Row(f"{COMMANDS}, --decoding {mode}") for mode in MODES}
    names = (
        f"{GENERATORS}, our generators",
        f"{COMMANDS}, as it is",
        f"{COMMANDS}, in our modes",
    )
    generators, commands, again = results = [
        Result(Row(name), args.seed) for name in names
    ]
    run(
        GENERATORS,
        generators,
        args.only,
        lambda module: {"SequenceGenerator": in_place},
    )
    run(COMMANDS, commands, args.only, lambda module: {})
    run(
        COMMANDS,
        again,
        args.only,
        lambda module: {"generate_main": by_modes(module.generate_main, modes, again)},
    )

    # the tests of `again` are those of `commands`
    rows = [generators.row, commands.row, *modes.values()]
    if not any(result.testsRun or result.row.failed for result in results):
        raise AggdecError(
            f"--only {args.only}: no test of {args.folder} has this in its name"
        )
    print("\n".join(row.text for row in rows))
    sys.exit(any(row.failed for row in rows))


if __name__ == "__main__":
    main()
