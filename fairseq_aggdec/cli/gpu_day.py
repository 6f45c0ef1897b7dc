"""`scripts/gpu_day.sh run` and `report`: docs/gpu-day.md."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairseq_aggdec.cli.options import add_data_sets_option
from fairseq_aggdec.errors import AggdecError, on_command_line

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 540  # the time limit of one call


@on_command_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Command line; see --help. Returns 1 where a step has failed."""
    args = _parser().parse_args(argv)
    if args.command == "data":
        from fairseq_aggdec.lab.gpu_day.data import write_data

        write_data(args.folder, args.data, args.task, args.pairs)
        return 0
    work = args.work.resolve() / ("gpu_day_rehearsal" if args.rehearse else "gpu_day")
    results = args.results.resolve() if args.results else work / "results"

    from fairseq_aggdec.lab.gpu_day import page, running
    from fairseq_aggdec.lab.gpu_day.parts import Day

    parts = {part.name: part for part in Day(_ROOT, work, args.data.resolve(), args.rehearse).parts()}
    unknown = [name for name in args.parts if name not in parts]
    if unknown:
        raise AggdecError(f"no part is called {', '.join(unknown)}; there are {', '.join(parts)}")
    wanted = [parts[name] for name in args.parts or parts]
    if args.command == "report":
        found = [record for part in wanted if (record := running.load(results, part.name)) is not None]
        if not found:
            raise AggdecError(f"{results}: nothing has been measured there; run scripts/gpu_day.sh run first")
        print(page.markdown(found))
        return 0
    if not args.rehearse:
        _check_gpu()
    out = Path(os.environ["OUT"]).resolve() if os.environ.get("OUT") else None
    os.chdir(_ROOT)
    records = running.run(wanted, results, out, args.seconds, args.again)
    return _say(records, results)


def _check_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        raise AggdecError(
            "PyTorch finds no GPU here: check nvidia-smi, or give --rehearse, which is tiny and on the CPU"
        )


def _say(records: list[dict[str, Any]], results: Path) -> int:
    """Print the result of each part, and return the exit code."""
    worst = 0
    for record in records:
        steps, left = record["steps"], record["left"]
        failed = [step["name"] for step in steps if step["state"] == "failed"]
        done = sum(step["state"] == "done" for step in steps)
        words = [f"{done} done"]
        words += [f"failed: {', '.join(failed)} ({results}/{record['part']}.STEP.log)"] if failed else []
        words += [f"left: {', '.join(left)}"] if left else []
        print(f"{record['part']}: {'; '.join(words)}")
        worst = max(worst, int(bool(failed)))
    if any(record["left"] for record in records):
        again = "; with --again, also with what has failed and what needs it" if worst else ""
        print(f"the same command goes on with what is left{again}", file=sys.stderr)
    return worst


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/gpu_day.sh", description="Everything that waits for a GPU.")
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("parts", nargs="*", metavar="PART", help="default: all, in the order of docs/gpu-day.md")
    shared.add_argument("--rehearse", action="store_true", help="tiny, on the CPU")
    shared.add_argument("--results", type=Path, metavar="FOLDER", help="of PART.json (default: work/gpu_day/results)")
    common = argparse.ArgumentParser(add_help=False)
    add_data_sets_option(common, "folder of the data sets")
    common.add_argument("--work", type=Path, default=Path(os.environ.get("AGGDEC_WORK", _ROOT / "work")))
    run = commands.add_parser("run", parents=[shared, common], help="run what is left of the parts")
    run.add_argument("--seconds", type=float, default=_SECONDS, help="for this call (default: %(default)s)")
    run.add_argument("--again", action="store_true", help="also what has failed before")
    commands.add_parser("report", parents=[shared, common], help="print what was measured, as Markdown")
    data = commands.add_parser("data", parents=[common], help="make sentences for a shipped model")
    data.add_argument("task", choices=("gec", "mt"))
    data.add_argument("folder", type=Path)
    data.add_argument("--pairs", type=int, default=20_000)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
