"""`aggdec-bench`: decoding modes side by side on a binarised test set."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import read_text_lines


@on_command_line()
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
    parser.add_argument(
        "--modes",
        default="beam5,beam1,greedy,iad",
        help="comma separated, from beamN (fairseq's own), greedy, iad, nar, gad, gad++, gad++:BETA:TOLERANCE "
        "(default: %(default)s)",
    )
    parser.add_argument("--drafter-path", help="the drafter's checkpoint, for nar, gad and gad++")
    parser.add_argument("--block-size", type=int, default=0, help="tokens a draft (default: what the drafter learned)")
    parser.add_argument("--reference", type=Path, help="running text of the subset's targets, for BLEU")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--limit", type=int, help="only the first N sentences")
    parser.add_argument("--rounds", type=int, default=3, help="how often each mode runs (default: 3)")
    parser.add_argument("--threads", type=int, help="torch threads")
    parser.add_argument("--profile", action="store_true", help="one more round of each mode of the plugin, by module")
    parser.add_argument("--json", type=Path, help="write times, counters and the machine to this file")
    args = parser.parse_args(argv)
    for name in ("batch_size", "limit", "rounds", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} {value}: must be at least 1")

    import torch
    from tabulate import tabulate

    import fairseq_aggdec

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s | %(message)s")
    if args.threads:
        torch.set_num_threads(args.threads)
    fairseq_aggdec.register()
    from fairseq_aggdec import benchmark

    options = {"drafter_path": args.drafter_path, "block_size": args.block_size}
    task, models = benchmark.load(args.path, args.data, args.source_lang, args.target_lang, **options)
    task.load_dataset(args.gen_subset)
    dataset = task.dataset(args.gen_subset)
    references = list(read_text_lines(args.reference)) if args.reference else []
    if references and len(references) != len(dataset):
        raise AggdecError(
            f"{args.reference} has {len(references)} lines, {args.gen_subset} of {args.data} {len(dataset)} sentences"
        )
    numbers = range(len(dataset))[: args.limit]
    batches = benchmark.batches_of(task, [dataset.src[i] for i in numbers], args.batch_size)
    results = benchmark.compare(task, models, batches, args.modes.split(","), args.rounds)

    if references:
        benchmark.score(task, results, references, task.cfg.target_lang)

    headers, rows = benchmark.table(results)
    headers = [header.replace("\n", " ") for header in headers]
    print(f"{len(numbers)} sentences of {args.gen_subset}, batch size {args.batch_size}, {args.rounds} rounds")
    print(benchmark.machine())
    print(f"command: aggdec-bench {' '.join(sys.argv[1:] if argv is None else argv)}")
    print(tabulate(rows, headers, tablefmt="github"))
    profiles = {}
    if args.profile:
        own = [result.mode for result in results if result.totals is not None]
        profiles = {mode: benchmark.profile(task, models, batches, mode) for mode in own}
        print("\nmilliseconds per sentence and share, by module")
        modules = list(dict.fromkeys(module for times in profiles.values() for module in times))
        lines = []
        for mode, times in profiles.items():
            total = sum(times.values())
            cells = [
                f"{1e3 * times[m] / len(numbers):.2f} ({times[m] / total:.0%})" if m in times else "" for m in modules
            ]
            lines.append([mode, *cells])
        print(tabulate(lines, ["mode", *modules], tablefmt="github"))
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
            "profiles": profiles,
            "table": [dict(zip(headers, row, strict=True)) for row in rows],
        }
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
