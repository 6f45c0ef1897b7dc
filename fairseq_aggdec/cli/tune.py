"""`aggdec-tune`: which k, β and τ of GAD++ to take, measured on a development set (papers/000 Tables 6 and 7)."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.evaluation.metrics import choose_metrics
from fairseq_aggdec.evaluation.reference_set import ReferenceSet, check_sources
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.tuning import choice, tables
from fairseq_aggdec.tuning.points import Sweep

if TYPE_CHECKING:
    from fairseq_aggdec.benchmarking.subject import Subject
    from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationTask

QUALITIES = ("sacrebleu", "bleu", "compound-bleu", "rouge", "sari", "gleu", "m2", "m2-references", "exact")
"""metrics of which more is better; of several columns the last counts"""


def _numbers(kind: type, least: float) -> Any:
    def read(text: str) -> list[Any]:
        try:
            numbers = [kind(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if not numbers or min(numbers) < least or len(set(numbers)) < len(numbers):
            raise argparse.ArgumentTypeError(
                f"{text}: give different numbers of at least {least:g}, separated by commas"
            )
        return numbers

    return read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aggdec-tune", description=__doc__)
    parser.add_argument("data", help="folder made by fairseq-preprocess")
    parser.add_argument("--path", required=True, help="the verifier's checkpoint, or several joined by ':'")
    parser.add_argument("--drafter-path", required=True, help="the drafter's checkpoint")
    parser.add_argument(
        "--output", type=Path, required=True, help="file of what was measured, a line each; a stopped run goes on there"
    )
    parser.add_argument("--gen-subset", default="valid", help="split to decode (default: valid)")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    parser.add_argument("--limit", type=int, help="only the first N sentences")
    sizes, tolerances = _numbers(int, 1), _numbers(float, 0)
    parser.add_argument("--block-sizes", type=sizes, default=[10, 15, 20, 25], help="k (default: 10,15,20,25)")
    parser.add_argument("--betas", type=sizes, default=[3, 5], help="β (default: 3,5)")
    parser.add_argument(
        "--tolerances", type=tolerances, default=[1.0, 2.0, 3.0, 4.0, 5.0], help="τ (default: 1,2,3,4,5)"
    )
    parser.add_argument(
        "--full-grid",
        action="store_true",
        help="all combinations; without it every k with the first β and τ, then every β and τ with the fastest k that "
        "loses no more than --loss",
    )
    parser.add_argument("--metric", choices=QUALITIES, default="bleu", help="quality (default: bleu, of tokens)")
    parser.add_argument("--text-reference", type=Path, help="running text of the split's targets, for sacrebleu")
    parser.add_argument("--m2", type=Path, help="gold edits of the split, for m2")
    parser.add_argument(
        "--margin", type=float, default=0.0, help="high-quality must be this much above greedy decoding (default: 0)"
    )
    parser.add_argument(
        "--loss", type=float, default=0.5, help="high-efficiency may be this much below greedy decoding (default: 0.5)"
    )
    parser.add_argument("--beam", type=int, default=5, help="of the baseline (default: 5)")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="rounds; times are their median (default: 3)")
    parser.add_argument("--threads", type=int, help="of PyTorch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    precision = parser.add_mutually_exclusive_group()
    for name in ("fp16", "bf16"):
        precision.add_argument(f"--{name}", action="store_true")
    parser.add_argument(
        "--figure", type=Path, action="append", default=[], help="draw quality against speed, .png or .svg; repeatable"
    )
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    for name in ("limit", "beam", "batch_size", "repeats", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} {value}: must be at least 1")
    for path in args.figure:
        if path.suffix not in (".png", ".svg"):
            parser.error(f"--figure {path}: must end with .png or .svg")
    if args.metric == "sacrebleu" and args.text_reference is None:
        parser.error("--metric sacrebleu: give --text-reference, the split's targets as running text")
    if args.metric == "m2" and args.m2 is None:
        parser.error("--metric m2: give the split's gold edits by --m2")


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: files do not fit, or --output was measured under other conditions.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s | %(message)s")
    for logger in (None, "fairseq", "fairseq_aggdec"):  # fairseq may have set them as it was imported
        logging.getLogger(logger).setLevel(logging.WARNING)
    import torch

    import fairseq_aggdec

    if args.threads:
        torch.set_num_threads(args.threads)
    fairseq_aggdec.register()
    from fairseq_aggdec.benchmarking.subject import Runners
    from fairseq_aggdec.tuning.sweep import Measurement, run

    subject, test, task = _read(args)
    metric = choose_metrics([args.metric], test)[args.metric]

    def quality(outputs: Mapping[int, Sequence[int]]) -> float:
        return metric.score(test, [_words(task.target_dictionary, outputs[number]) for number in sorted(outputs)])[-1]

    sweep = Sweep.open(args.output, _conditions(args, subject))
    by_size = choice.block_sizes_first(args.block_sizes, args.betas, args.tolerances)
    with Runners(subject) as runners:
        measurement = Measurement(runners, quality, args.batch_size, args.repeats)
        run(sweep, measurement, by_size, args.beam)
        assert sweep.baselines is not None
        greedy = sweep.baselines.greedy_quality
        sizes = args.block_sizes
        if not args.full_grid:
            first = [sweep.points[setting] for setting in by_size]
            best = choice.high_efficiency(first, greedy, args.loss) or choice.fastest(first, float("-inf"))
            assert best is not None
            sizes = [best.setting.block_size]
        run(sweep, measurement, choice.grid(sizes, args.betas, args.tolerances), args.beam)
    name = metric.columns[-1]
    print(tables.block_size_table(sweep, by_size, name), end="\n\n")
    for size in sizes:
        print(tables.acceptance_table(sweep, size, name), end="\n\n")
    print(tables.choice_text(sweep, name, args.margin, args.loss))
    if args.figure:
        from fairseq_aggdec.tuning.figure import draw

        points = list(sweep.points.values())
        chosen = {
            "high-quality": choice.high_quality(points, greedy, args.margin),
            "high-efficiency": choice.high_efficiency(points, greedy, args.loss),
        }
        for path in args.figure:
            draw(sweep, name, chosen, path)


def _read(args: argparse.Namespace) -> tuple[Subject, ReferenceSet, AggressiveTranslationTask]:
    """What to decode, what to compare it with, and the task with the dictionaries."""
    from fairseq_aggdec.benchmarking.subject import read_subject
    from fairseq_aggdec.data.m2_file import read_m2

    subject, task = read_subject(args)
    dataset = task.dataset(args.gen_subset)
    if dataset.tgt is None:
        raise AggdecError(f"{args.gen_subset} of {args.data} has no target side to compare with")
    numbers = range(len(subject.sentences))
    sources = [_words(task.source_dictionary, sentence) for sentence in subject.sentences]
    references = [_words(task.target_dictionary, dataset.tgt[number].tolist()) for number in numbers]
    text = read_text_lines(args.text_reference) if args.text_reference else []
    gold = read_m2(args.m2) if args.m2 else []
    for path, lines in ((args.text_reference, text), (args.m2, gold)):
        if path is not None and len(lines) != len(dataset):
            raise AggdecError(f"{path} has {len(lines)} sentences, {args.gen_subset} of {args.data} has {len(dataset)}")
    gold = gold[: len(numbers)]
    if gold:
        check_sources(sources, gold, Path(args.data) / args.gen_subset, args.m2)
    running = [text[: len(numbers)]] if text else []
    return subject, ReferenceSet(sources, [references], running, task.cfg.target_lang, gold), task


def _words(dictionary: Any, tokens: Sequence[int]) -> list[str]:
    """Words of token numbers, subwords joined, EOS left out."""
    import torch

    return str(dictionary.string(torch.tensor(tokens), bpe_symbol="subword_nmt")).split()


def _conditions(args: argparse.Namespace, subject: Subject) -> dict[str, Any]:
    """What must stay the same for measurements to be comparable."""
    import torch

    from fairseq_aggdec.benchmarking.machine import machine

    files = [*args.path.split(":"), args.drafter_path]
    return {
        "models": {path: Path(path).stat().st_size for path in files},
        "data": f"{args.gen_subset} of {args.data}",
        "sentences": len(subject.sentences),
        "metric": args.metric,
        "beam": args.beam,
        "batch_size": args.batch_size,
        "repeats": args.repeats,
        "device": subject.device,
        "precision": subject.precision,
        "threads": torch.get_num_threads(),
        "machine": machine(),
    }


if __name__ == "__main__":
    main()
