"""What the parts of the look-ahead bring: passes and prefixes of aggressive beam search, one part left out at a time.

    python -m fairseq_aggdec.lab.benchmarking.beam_ablation DATA-BIN --path model.pt --limit 100 --json OUT

One sentence at a time; nothing is timed, and the numbers depend on rounding alone. The command fails where two variants
have different lists.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.cli import options
from fairseq_aggdec.decoding.beam import planner
from fairseq_aggdec.decoding.beam.planner import FixedBudget, LookAhead
from fairseq_aggdec.decoding.beam.prefix_tree import Node, Row
from fairseq_aggdec.decoding.beam.roles import Planner, Sentence
from fairseq_aggdec.decoding.beam.search import BeamOptions
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import check_result_file, written_whole
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.lab.benchmarking import machine
from fairseq_aggdec.lab.benchmarking.subject import Subject, read_subject
from fairseq_aggdec.lab.benchmarking.tables import Table
from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.tasks import loading

SOURCES = ("own track", "rejoining", "draft", "substitution", "nothing")
"""where the planner has a row from, in its order"""


@dataclass(frozen=True)
class Variant:
    """A way to look ahead."""

    name: str
    budget: int | None = None
    """prefixes of a pass; None for as many as the schedule thinks worth it"""
    rejoins: bool = True
    copies: bool = True
    """whether the first pass scores the source where nothing drafts"""
    drafts: bool = True
    """whether a drafter is asked, if there is one"""
    looks: bool = True
    """whether it looks ahead at all"""


def variants(drafter: bool, budgets: Sequence[int] = (16, 32, 64, 128), ablated: int = 64) -> list[Variant]:
    """Those of the table: without one part after the other at one budget, all parts at several, as the mode decodes."""
    without = Variant(f"{ablated}, without the drafter", ablated, drafts=False)
    return [
        Variant("plain: one pass a step", looks=False),
        Variant("as decoded, learnt"),
        *(Variant(f"{budget} prefixes", budget) for budget in budgets),
        Variant(f"{ablated}, without rejoining", ablated, rejoins=False),
        without if drafter else Variant(f"{ablated}, without the source", ablated, copies=False),
    ]


@dataclass
class Loans:
    """Rows that the planner had from one place."""

    prefixes: int = 0
    """that had the last row that was guessed for them from there"""
    reached: int = 0
    """of them, those that the search has come to"""
    right: int = 0
    """of these, those whose likeliest token was that of the row which was guessed"""


@dataclass
class Counts:
    """What all sentences took together."""

    sentences: int = 0
    steps: int = 0
    passes: int = 0
    positions: int = 0
    """prefixes that were scored"""
    ahead: int = 0
    """of them, those that the search did not wait for"""
    used: int = 0
    """of these, those that it has come to"""
    loans: dict[str, Loans] = field(default_factory=lambda: {source: Loans() for source in SOURCES})


class _Watched(Planner):
    """Another planner, and what becomes of its plans; of one sentence at a time."""

    def __init__(self, watched: Planner, counts: Counts, lent: dict[Node, tuple[str, int | None]]) -> None:
        self._watched, self._counts, self._lent = watched, counts, lent
        self._needed: set[Node] = set()
        lent.clear()

    def plan(self, sentences: Sequence[Sentence]) -> Sequence[Sequence[Node]]:
        self._counts.passes += 1
        self._needed.update(sentences[0].needed)
        return self._watched.plan(sentences)

    def learn(self, sentences: Sequence[Sentence], steps: Sequence[int]) -> None:
        self._watched.learn(sentences, steps)
        self._counts.steps += steps[0]
        if sentences[0].search.has_ended:
            self._ended(sentences[0])

    def keep(self, rows: Tensor) -> None:
        self._watched.keep(rows)

    def _ended(self, sentence: Sentence) -> None:
        counts = self._counts
        scored = [node for nodes in sentence.tree.ending_in.values() for node in nodes]
        ahead = [node for node in scored if node not in self._needed]
        counts.sentences += 1
        counts.positions += len(scored)
        counts.ahead += len(ahead)
        counts.used += sum(node.was_live for node in ahead)
        for node, (source, best) in self._lent.items():
            loans = counts.loans[source]
            loans.prefixes += 1
            if node.was_live and node.row is not None:
                loans.reached += 1
                loans.right += best == node.row.tokens[0]


class _Generator(AggressiveBeamGenerator):
    """Looks ahead as a variant does."""

    def __init__(self, stock: Any, settings: Any, variant: Variant, counts: Counts, lent: dict) -> None:
        super().__init__(stock, settings, variant.budget)
        self._variant, self._counts, self._lent = variant, counts, lent

    def make_planner(
        self, net_input: dict[str, Any], encoder_outs: list[dict[str, Any]], options: BeamOptions
    ) -> Planner:
        made: Planner | None = None
        if self._variant.looks and self._variant.copies:
            made = super().make_planner(net_input, encoder_outs, options)
        elif self._variant.looks:
            made = LookAhead(self._look_ahead(net_input["src_tokens"].device))
        made = made or LookAhead(FixedBudget(0))  # where nothing is scored ahead: the same passes, to be watched
        return _Watched(made, self._counts, self._lent)


@contextmanager
def _simulating(variant: Variant, lent: dict[Node, tuple[str, int | None]]) -> Iterator[None]:
    """The planner's simulation notes whose rows it borrows, and does without what the variant has not."""

    class Simulation(planner._Simulation):
        def _borrow(self, node: Node) -> tuple[Row | None, Node | None]:
            row, lender = super()._borrow(node)
            lent[node] = self._kind(node, row, lender), row.tokens[0] if row else None
            return row, lender

        def _alike(self, node: Node, before: int) -> Node | None:
            return super()._alike(node, before) if variant.rejoins else None

        def _kind(self, node: Node, row: Row | None, lender: Node | None) -> str:
            if lender is None:
                return "draft" if row else "nothing"
            if lender.token != node.token:
                return "substitution"
            assert node.parent is not None
            last = node.parent if node.parent.row is not None else self._borrowed[node.parent][1]
            return "own track" if lender.parent is last else "rejoining"

    stock = planner._Simulation
    planner._Simulation = Simulation  # type: ignore[misc]
    try:
        yield
    finally:
        planner._Simulation = stock  # type: ignore[misc]


def measure(subject: Subject, beam: int, wanted: Sequence[Variant]) -> dict[str, Counts]:
    """Decode all sentences in every variant.

    Raises:
        AggdecError: a variant has other lists than the first.
    """
    found: dict[str, Counts] = {}
    first: list[list[list[int]]] = []
    for variant in wanted:
        drafter = {"drafter_path": subject.drafter_path} if variant.drafts and subject.drafter_path else {}
        task, models = loading.load(
            subject.path, subject.data, subject.source_lang, subject.target_lang, decoding="aggressive-beam", **drafter
        )
        counts, lent = Counts(), dict[Node, tuple[str, int | None]]()
        own = {"variant": variant, "counts": counts, "lent": lent}
        generator = task.build_generator(models, argparse.Namespace(beam=beam, **subject.generation), _Generator, own)
        sentences = [torch.tensor(sentence) for sentence in subject.sentences]
        with _simulating(variant, lent):
            lists = [
                [hypothesis["tokens"].tolist() for hypothesis in task.inference_step(generator, models, batch)[0]]
                for batch in loading.batches_of(task, sentences, 1)
            ]
        task.release()
        first = first or lists
        if differing := [number for number, (one, other) in enumerate(zip(first, lists, strict=True)) if one != other]:
            raise AggdecError(f"{variant.name}: sentences {differing} have other lists than in {wanted[0].name}")
        found[variant.name] = counts
    return found


def passes_table(found: Mapping[str, Counts]) -> Table:
    """The passes of every variant."""
    rows = []
    for name, counts in found.items():
        each = counts.sentences
        used = f"{counts.used / counts.ahead:.0%}" if counts.ahead else ""
        numbers = [counts.passes / each, counts.positions / each, counts.positions / counts.passes]
        rows.append([name, *(f"{number:.2f}" for number in numbers), used])
    heads = ["passes a sentence", "positions a sentence", "positions a pass", "scored ahead and used"]
    return ["look-ahead", *heads], rows


def shares(counts: Counts) -> list[str]:
    """For each of `SOURCES` but the last: prefixes of a sentence, how many were reached, share that was right."""
    cells = []
    for source in SOURCES[:-1]:
        loans = counts.loans[source]
        right = f"{loans.right / loans.reached:.0%}" if loans.reached else "–"
        each = f"{loans.prefixes / counts.sentences:.1f}; {loans.reached / counts.sentences:.1f}; {right}"
        cells.append(each if loans.prefixes else "")
    return cells


def tables(found: Mapping[str, Counts]) -> str:
    """The passes of every variant, and where each had its rows from."""
    lent = [[name, *cells] for name, counts in found.items() if any(cells := shares(counts))]
    steps = next(iter(found.values()))
    head = f"{steps.sentences} sentences, {steps.steps / steps.sentences:.2f} steps a sentence"
    return f"{head}\n\n{text_table(*passes_table(found))}\n\n{text_table(['look-ahead', *SOURCES[:-1]], lent)}"


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="beam_ablation", description=__doc__.partition("\n")[0])
    options.add_subject_options(parser)
    parser.add_argument("--limit", type=int, default=100, help="the first N sentences (default: %(default)s)")
    parser.add_argument("--beam", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the counts to this file")
    parser.set_defaults(precision=None)
    args = parser.parse_args(argv)
    if args.json:
        check_result_file(args.json, "{")
    options.start(args.threads)
    subject, _ = read_subject(args)
    found = measure(subject, args.beam, variants(bool(args.drafter_path)))
    if args.json:
        record = {
            "command": f"python -m {__spec__.name} {shlex.join(sys.argv[1:] if argv is None else argv)}",
            "date": machine.now(),
            "commit": machine.commit(),
            "machine": machine.machine(),
            "variants": {name: asdict(counts) for name, counts in found.items()},
        }
        with written_whole(args.json) as partial:
            partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(tables(found))


if __name__ == "__main__":
    sys.exit(main())
