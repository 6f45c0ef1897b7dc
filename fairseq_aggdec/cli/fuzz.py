"""`scripts/fuzz.sh`: compares random models, options, batches and drafts with stock fairseq, for as long as wanted."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

import fairseq_aggdec
from fairseq_aggdec.errors import AggdecError, on_command_line

_PROGRESS = 60.0
"""the seconds between two progress messages"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzz.sh", description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=Path("work/fuzz/run.json"),
        help="file of counters and counterexamples; a stopped run goes on there (default: work/fuzz/run.json)",
    )  # fmt: skip
    parser.add_argument("--sentences", type=int, help="stop when so many sentences were decoded (default: never)")
    parser.add_argument("--cases", type=int, help="stop when so many cases were checked")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--first", type=int, default=0, help="number of a new run's first case (default: 0)")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="check this case alone")
    parser.add_argument("--changes", default="{}", metavar="JSON", help="fields of that case to change")
    parser.add_argument("--shrink", action="store_true", help="make that case smaller where it fails")
    parser.add_argument(
        "--threads", type=int, default=1, help="number of PyTorch's threads (default: 1, as the models are tiny)"
    )
    return parser


@on_command_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Prints counterexamples and a last line of counters; returns 1 if there are counterexamples, else 0.

    Raises:
        AggdecError: an option makes no sense.
    """
    args = _parser().parse_args(argv)
    torch.set_num_threads(args.threads)
    warnings.filterwarnings("ignore", category=FutureWarning)
    fairseq_aggdec.register()
    logging.getLogger("fairseq_aggdec").setLevel(
        logging.ERROR
    )  # no warnings of fallbacks and of options without effect
    from fairseq_aggdec.lab.lossless.fuzzing.running import Run

    if args.case is not None:
        return _one(args)
    run = Run(args.output, args.first)
    end = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")
    said = time.monotonic()
    while (
        time.monotonic() < end
        and (args.sentences is None or run.state["sentences"] < args.sentences)
        and (args.cases is None or run.state["cases"] < args.cases)
    ):
        run.next(lambda text: print(text, flush=True))
        if time.monotonic() > said + _PROGRESS:
            said = time.monotonic()
            print(run.summary(), file=sys.stderr, flush=True)
    print(run.summary())
    return 1 if run.state["counterexamples"] else 0


def _one(args: argparse.Namespace) -> int:
    from fairseq_aggdec.lab.lossless.fuzzing import running
    from fairseq_aggdec.lab.lossless.fuzzing.cases import draw

    try:
        case = draw(args.case).changed(**json.loads(args.changes))
    except (ValueError, TypeError) as error:
        raise AggdecError(f"--changes {args.changes}: not fields of a case ({error})") from error
    result = running.check(case)
    if result.refused:
        print(f"stock fairseq refuses this case: {result.refused}")
    for finding in result.findings:
        print(f"{case.kind}, {json.dumps(case.modes[finding.mode])}: {finding.what}\n{finding.text}")
        if args.shrink:
            print(f"repeat: {running.command(running.shrink(case, finding))}")
    print(f"{result.sentences} sentences in {len(result.modes)} modes, {len(result.findings)} findings")
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
