"""`aggdec-bench`: decoding modes side by side on a binarised test set."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import install_excepthook


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the benchmark; see --help."""
    parser = argparse.ArgumentParser(
        prog="aggdec-bench", description="Time decoding modes on the same sentences, interleaved, in one process."
    )
    parser.add_argument("data", help="folder made by fairseq-preprocess")
    parser.add_argument("--path", required=True, help="checkpoint, or several joined by ':'")
    parser.add_argument("--gen-subset", default="test", help="split to decode (default: test)")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    parser.add_argument("--modes", default="beam5,beam1,greedy,iad", help="comma separated (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--limit", type=int, help="only the first N sentences")
    parser.add_argument("--rounds", type=int, default=3, help="how often each mode runs (default: 3)")
    parser.add_argument("--threads", type=int, help="torch threads")
    parser.add_argument("--json", type=Path, help="write times, counters and the machine to this file")
    args = parser.parse_args(argv)
    for name in ("batch_size", "limit", "rounds", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} {value}: must be at least 1")

    import torch
    from tabulate import tabulate

    import fairseq_aggdec

    install_excepthook()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s | %(message)s")
    if args.threads:
        torch.set_num_threads(args.threads)
    fairseq_aggdec.register()
    from fairseq_aggdec import benchmark

    task, models = benchmark.load(args.path, args.data, args.source_lang, args.target_lang)
    task.load_dataset(args.gen_subset)
    dataset = task.dataset(args.gen_subset)
    numbers = range(len(dataset))[: args.limit]
    batches = benchmark.batches_of(task, [dataset.src[i] for i in numbers], args.batch_size)
    results = benchmark.compare(task, models, batches, args.modes.split(","), args.rounds)

    headers, rows = benchmark.table(results)
    headers = [header.replace("\n", " ") for header in headers]
    print(f"{len(numbers)} sentences of {args.gen_subset}, batch size {args.batch_size}, {args.rounds} rounds")
    print(benchmark.machine())
    print(f"command: aggdec-bench {' '.join(sys.argv[1:] if argv is None else argv)}")
    print(tabulate(rows, headers, tablefmt="github"))
    if args.json:
        record = {
            "machine": benchmark.machine(),
            "sentences": len(numbers),
            "batch_size": args.batch_size,
            "modes": [
                {
                    "mode": r.mode,
                    "rounds": r.rounds,
                    "latencies": [[round(t, 6) for t in times] for times in r.latencies],
                }
                for r in results
            ],
            "table": [dict(zip(headers, row, strict=True)) for row in rows],
        }
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
