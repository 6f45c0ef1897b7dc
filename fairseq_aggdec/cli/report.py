"""`aggdec-report OUT.json...`: tables and figures of what aggdec-bench has measured."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, on_command_line


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = argparse.ArgumentParser(
        prog="aggdec-report",
        description="Print the tables of one or more measurements (Markdown), and draw their figures: speed-ups of the "
        "sentences, speed-up against edit ratio, latency against batch size, time by module, memory.",
    )
    parser.add_argument("records", nargs="+", type=Path, metavar="OUT.json", help="written by aggdec-bench --json")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw, as PNG and SVG, into this folder")
    args = parser.parse_args(argv)

    from fairseq_aggdec.benchmarking.record import load_record
    from fairseq_aggdec.benchmarking.report import markdown

    stems = [path.stem for path in args.records]
    twice = next((stem for stem in stems if stems.count(stem) > 1), None)
    if args.figures and twice:
        raise AggdecError(f"--figures: two records are called {twice}, which their figures are named by: rename one")
    records = [load_record(path) for path in args.records]
    print("\n\n".join(f"## {stem}\n\n{markdown(record)}" for stem, record in zip(stems, records, strict=True)))
    if args.figures:
        from fairseq_aggdec.benchmarking.figures import draw

        for stem, record in zip(stems, records, strict=True):
            for path in draw(record, args.figures, stem):
                print(f"\n{path}" if path.suffix == ".png" else path)


if __name__ == "__main__":
    main()
