"""`python -m fairseq_aggdec.cli.ablation FOLDER`: drafters of several trainings side by side, as a Markdown table.

FOLDER/NAME holds one of them: `train/hydra_train.log` of its training, and `bench.json` that
`aggdec bench --modes greedy,gad --profile --json` wrote.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from fairseq_aggdec.benchmarking.record import Record, Run, load_record
from fairseq_aggdec.cli.markdown_output import add_output_option, machines_of, show
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.evaluation.training_log import Validation, read_validations, seconds_to

_GAD, _BASELINE = "gad", "greedy"


@dataclass(frozen=True)
class Variant:
    """One drafter, trained and measured.

    Attributes:
        name: of its folder.
        validations: of its training, in order.
        record: what aggdec bench wrote about it.
        gad, greedy: the two modes in it.
    """

    name: str
    validations: list[Validation]
    record: Record
    gad: Run
    greedy: Run

    @classmethod
    def read(cls, folder: Path) -> Variant:
        """Reads a variant's folder.

        Raises:
            AggdecError: a file is missing, or holds something else.
        """
        log, path = folder / "train/hydra_train.log", folder / "bench.json"
        for file in (log, path):
            if not file.is_file():
                raise AggdecError(f"{file}: no such file; train and measure this variant first")
        record = load_record(path)
        runs = {run.mode: run for run in record.runs}
        if not {_GAD, _BASELINE} <= runs.keys() or not runs[_GAD].modules or not runs[_GAD].iterations:
            raise AggdecError(f"{path}: run aggdec bench with --modes {_BASELINE},{_GAD} --profile")
        return cls(folder.name, read_validations(log), record, runs[_GAD], runs[_BASELINE])

    @property
    def best(self) -> float:
        """The best `accepted` of its training."""
        return max(validation.accepted for validation in self.validations)

    @property
    def milliseconds_per_call(self) -> float:
        """Of the drafter's decoder, which is called once an iteration."""
        return 1e3 * (self.gad.modules or {}).get("drafter", 0.0) / sum(self.gad.iterations or ())

    @property
    def encoder_milliseconds(self) -> float:
        """Of the drafter's own encoder for a sentence; next to nothing where it shares the verifier's."""
        return 1e3 * (self.gad.modules or {}).get("drafter's encoder", 0.0) / len(self.gad.tokens)


_HEADERS = [
    "variant",
    "updates",
    "training, s",
    "accepted (valid)",
    "s to the same accepted",
    "mean accepted tokens (GAD)",
    "ms per drafter call",
    "drafter's encoder, ms per sentence",
    "GAD over greedy",
]


def group_table(title: str, variants: Sequence[Variant]) -> str:
    """Markdown of one comparison.

    The time to the same accepted length is that to the level which all of its variants reach.
    """
    level = min(variant.best for variant in variants)
    rows = []
    for variant in variants:
        last, time = variant.validations[-1], seconds_to(variant.validations, level)
        rows.append(
            [
                variant.name,
                str(last.update),
                f"{last.seconds:.0f}",
                f"{variant.best:.2f}",
                "" if time is None else f"{time:.0f} (to {level:.2f})",
                f"{variant.gad.mean_accepted_tokens:.2f}",
                f"{variant.milliseconds_per_call:.2f}",
                f"{variant.encoder_milliseconds:.2f}",
                f"{variant.greedy.seconds / variant.gad.seconds:.2f}x",
            ]
        )
    return f"**{title}**\n\n{tabulate(rows, _HEADERS, tablefmt='github', disable_numparse=True)}"


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_aggdec.cli.ablation", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the variants' folders")
    parser.add_argument(
        "--group",
        nargs="+",
        action="append",
        required=True,
        metavar=("TITLE", "NAME"),
        help="variants that are compared with one another; can be repeated",
    )
    add_output_option(parser)
    args = parser.parse_args(argv)
    for title, *names in args.group:
        if not names:
            parser.error(f"--group {title}: name variants after the title")
    names = dict.fromkeys(name for _, *group in args.group for name in group)
    variants = {name: Variant.read(args.folder / name) for name in names}
    tables = [group_table(title, [variants[name] for name in group]) for title, *group in args.group]
    machines = machines_of(variant.record for variant in variants.values())
    sizes = dict.fromkeys(f"{len(v.gad.tokens)} sentences, batch size {v.gad.batch_size}" for v in variants.values())
    head = f"{' / '.join(sizes)}; {machines}. Training time is that of training steps alone."
    text = "\n\n".join([head, *tables]) + "\n"
    show(text, args.output)


if __name__ == "__main__":
    main()
