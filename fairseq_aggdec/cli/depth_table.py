"""`python -m fairseq_aggdec.cli.depth_table CONFIG DEPTH...`: papers/002 Table 4, models of several depths.

A DEPTH such as 9-3 names `decode/SUBSET/depth-9-3-MODE/generate-SUBSET.txt` and `bench/depth-9-3.json` in the work
folder, which decoding and `aggdec bench --modes beam5,greedy,iad --json` wrote about the model with 9 encoder and 3
decoder layers. The first one is what the others are compared with.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from fairseq_aggdec.benchmarking.record import Record, Run, load_record
from fairseq_aggdec.cli.markdown_output import add_output_option, machines_of, show
from fairseq_aggdec.data.preparation import read_config
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.evaluation.experiment_scores import experiment_set, subsets
from fairseq_aggdec.evaluation.metrics import Metric, choose_metrics
from fairseq_aggdec.evaluation.reference_set import ReferenceSet, read_outputs

_MODES = ("beam5", "greedy", "iad")
_SCORED = ("beam5", "greedy")
"""`iad` says what `greedy` says"""


@dataclass(frozen=True)
class Depth:
    """One model, decoded and measured."""

    name: str
    """encoder and decoder layers: `9-3`"""
    scores: dict[str, dict[str, float]]
    """of beam search and of greedy decoding, by column"""
    record: Record
    runs: dict[str, Run]
    """by mode"""

    def seconds(self, mode: str) -> float:
        """The median of the rounds over the whole test set."""
        return self.runs[mode].seconds


def read_depth(name: str, work: Path, subset: str, test: ReferenceSet, metrics: Mapping[str, Metric]) -> Depth:
    """Reads what a depth's decoding and measurement have left.

    Raises:
        AggdecError: a file is missing, incomplete, or `iad`'s output is not that of `greedy`.
    """
    path = work / "bench" / f"depth-{name}.json"
    if not path.is_file():
        raise AggdecError(f"{path}: no such file; run the stage `depth` first")
    record = load_record(path)
    runs = {run.mode: run for run in record.runs}
    missing = [mode for mode in _MODES if mode not in runs]
    if missing:
        raise AggdecError(f"{path}: run aggdec bench with --modes {','.join(_MODES)}; there is no {', '.join(missing)}")
    same = runs["iad"].identical_to(runs["greedy"])
    if same < len(runs["iad"].tokens):
        raise AggdecError(f"{path}: iad gave {len(runs['iad'].tokens) - same} sentences that greedy did not give")
    scores = {}
    for mode in _SCORED:
        file = work / "decode" / subset / f"depth-{name}-{mode}" / f"generate-{subset}.txt"
        if not file.is_file():
            raise AggdecError(f"{file}: no such file; run the stage `depth` first")
        outputs = read_outputs(file, test.size)
        part, lines = test.only(sorted(outputs)), [outputs[number] for number in sorted(outputs)]
        # of a metric with several columns the last: of precision, recall and F the F
        scores[mode] = {metric.columns[-1]: metric.score(part, lines)[-1] for metric in metrics.values()}
    return Depth(name, scores, record, runs)


def table(depths: Sequence[Depth]) -> str:
    """Returns the Markdown: a row each depth; speed-ups are over the first one's greedy decoding and beam search."""
    first = depths[0]
    greedy, beam = (f"{_sum(first.name)} {mode}" for mode in ("greedy", "beam 5"))
    columns = list(first.scores["greedy"])
    headers = ["encoder + decoder", *(f"{name}, {mode}" for mode in ("beam 5", "greedy") for name in columns)]
    headers += ["beam 5, s", "greedy, s", f"greedy over {greedy}", "IAD, s", f"IAD over {greedy}", f"IAD over {beam}"]
    headers.append("IAD iterations")
    rows = []
    for depth in depths:
        iterations = depth.runs["iad"].mean_iterations
        rows.append(
            [
                _sum(depth.name),
                *(f"{depth.scores[mode][name]:.2f}" for mode in _SCORED for name in columns),
                f"{depth.seconds('beam5'):.2f}",
                f"{depth.seconds('greedy'):.2f}",
                _times(first.seconds("greedy"), depth.seconds("greedy")),
                f"{depth.seconds('iad'):.2f}",
                _times(first.seconds("greedy"), depth.seconds("iad")),
                _times(first.seconds("beam5"), depth.seconds("iad")),
                "" if iterations is None else f"{iterations:.2f}",
            ]
        )
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def _sum(name: str) -> str:
    return name.replace("-", "+")


def _times(slow: float, fast: float) -> str:
    return f"{slow / fast:.2f}x"


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: a depth has not been decoded or measured.
    """
    parser = argparse.ArgumentParser(prog="python -m fairseq_aggdec.cli.depth_table", description=__doc__)
    parser.add_argument("config", type=Path, help="the experiment's prepare.yaml")
    parser.add_argument("depths", nargs="+", metavar="DEPTH", help="encoder and decoder layers, such as 9-3")
    parser.add_argument("--work", type=Path, required=True, help="the experiment's work folder")
    parser.add_argument("--subset", default="test", help="fairseq's name of the test set (default: test)")
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the data sets, where M2 files are")
    parser.add_argument(
        "--metrics", help="those of aggdec score, comma separated (default: the first of the experiment's)"
    )
    add_output_option(parser)
    args = parser.parse_args(argv)
    config = read_config(args.config)
    sets = subsets(config)
    if args.subset not in sets:
        raise AggdecError(f"--subset {args.subset}: choose from {', '.join(sets)}")
    test = experiment_set(config, sets[args.subset], args.work, args.data)
    metrics = choose_metrics(args.metrics.split(",") if args.metrics else config["score"][:1], test)
    depths = [read_depth(name, args.work, args.subset, test, metrics) for name in args.depths]
    machines = machines_of(depth.record for depth in depths)
    timed = " / ".join(dict.fromkeys(str(len(depth.runs["iad"].tokens)) for depth in depths))
    text = (
        f"Scores of {test.size} sentences; times of the first {timed} of them, batch size 1; {machines}\n\n"
        f"{table(depths)}\n"
    )
    show(text, args.output)


if __name__ == "__main__":
    main()
