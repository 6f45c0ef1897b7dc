"""`aggdec-score`: GLEU and edit ratio of files, or a table of everything an experiment has decoded."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sacrebleu
from tabulate import tabulate

from fairseq_aggdec.data.preparation import read_config
from fairseq_aggdec.evaluation.edit_ratio import edit_ratio
from fairseq_aggdec.evaluation.generate_file import join_subwords, read_generate_file
from fairseq_aggdec.evaluation.gleu import corpus_gleu

Lines = list[list[str]]


def read_tokens(path: Path) -> Lines:
    """Returns a file's lines, split at spaces."""
    return [line.split() for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def mean_edit_ratio(sources: Lines, outputs: Lines) -> float:
    """Returns the mean over sentences of the edit ratio (papers/000 Figure 5)."""
    pairs = list(zip(sources, outputs, strict=True))
    return sum(edit_ratio(source, output) for source, output in pairs) / len(pairs)


def unchanged(sources: Lines, outputs: Lines) -> float:
    """Returns the share of outputs that equal their source."""
    return sum(source == output for source, output in zip(sources, outputs, strict=True)) / len(sources)


def exact(outputs: Lines, references: Sequence[Lines]) -> float:
    """Returns the share of outputs that equal one of their references."""
    return sum(output in choices for output, *choices in zip(outputs, *references, strict=True)) / len(outputs)


def score_row(
    name: str, sources: Lines, outputs: Lines, references: Sequence[Lines], metrics: Sequence[str]
) -> list[Any]:
    """Returns one row of the table: the metrics asked for, then edit ratio and shares unchanged and exactly right."""
    row: list[Any] = [name]
    text = [" ".join(line) for line in outputs]
    reference_text = [[" ".join(line) for line in part] for part in references]
    for metric in metrics:
        if metric == "gleu":
            row.append(100 * corpus_gleu(sources, outputs, references))
        elif metric == "bleu":  # the text is tokenised already
            row.append(sacrebleu.corpus_bleu(text, reference_text, tokenize="none", force=True).score)
        elif metric == "ter":
            row.append(sacrebleu.corpus_ter(text, reference_text).score)
        else:
            raise ValueError(f"unknown metric {metric!r}: choose from gleu, bleu, ter")
    shares = (mean_edit_ratio(sources, outputs), unchanged(sources, outputs), exact(outputs, references))
    return row + [100 * share for share in shares]


def subsets(config: dict[str, Any]) -> dict[str, str]:
    """Returns the names of the test sets by fairseq's names of them: `test`, `test1`, ..."""
    names = {"valid": "valid", "test": "test"}
    return names | {f"test{number}": item["name"] for number, item in enumerate(config.get("test_sets", []), start=1)}


def experiment_tables(config: dict[str, Any], work: Path) -> str:
    """Returns a table for each decoded test set: doing nothing first, then each decoding.

    Source, outputs and references are compared in the tokens that the model reads and writes.
    """
    metrics = config["score"]
    tables = []
    for subset, name in subsets(config).items():
        files = sorted((work / "decode" / subset).glob(f"*/generate-{subset}.txt"))
        if not files:
            continue
        source_side, target_side = config["languages"]["source"], config["languages"]["target"]
        reference_files = sorted((work / "tok").glob(f"{name}.ref*")) or [work / "tok" / f"{name}.{target_side}"]
        sources = read_tokens(work / "tok" / f"{name}.{source_side}")
        references = [read_tokens(file) for file in reference_files]
        rows = [score_row("source, unchanged", sources, sources, references, metrics)]
        for file in files:
            generated = read_generate_file(file)
            outputs = [join_subwords(item.hypothesis).split() for item in generated.values()]
            kept = list(generated)  # sentences that fairseq skipped as too long are left out of the row
            chosen = [[part[index] for index in kept] for part in references]
            label = file.parent.name if len(kept) == len(sources) else f"{file.parent.name} ({len(kept)} sentences)"
            rows.append(score_row(label, [sources[index] for index in kept], outputs, chosen, metrics))
        headers = [f"{name} ({len(sources)})", *(metric.upper() for metric in metrics)]
        headers += ["edit ratio %", "unchanged %", "equals a reference %"]
        tables.append(tabulate(rows, headers=headers, floatfmt=".2f"))
    if not tables:
        raise ValueError(f"nothing is decoded in {work / 'decode'}: run scripts/decode.sh first")
    return "\n\n".join(tables)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the scores; returns the exit status."""
    parser = argparse.ArgumentParser(prog="aggdec-score", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    gleu = commands.add_parser("gleu", help="GLEU of tokenised files (Napoles et al. 2015, 2016)")
    gleu.add_argument("--source", type=Path, required=True)
    gleu.add_argument("--output", type=Path, required=True, help="the corrected text")
    gleu.add_argument("--reference", type=Path, required=True, nargs="+")
    gleu.add_argument("--draws", type=int, default=500, help="random choices of one reference per sentence")
    gleu.add_argument("--seed", type=int, default=1)
    ratio = commands.add_parser("edit-ratio", help="mean token edit distance, normalised by source length")
    ratio.add_argument("--source", type=Path, required=True)
    ratio.add_argument("--output", type=Path, required=True)
    experiment = commands.add_parser("experiment", help="table of all decoded test sets of an experiment")
    experiment.add_argument("config", type=Path, help="the experiment's prepare.yaml")
    experiment.add_argument("--work", type=Path, required=True, help="the experiment's work folder")
    args = parser.parse_args(argv)
    try:
        if args.command == "experiment":
            print(experiment_tables(read_config(args.config), args.work))
            return 0
        sources, outputs = read_tokens(args.source), read_tokens(args.output)
        if len(sources) != len(outputs) or not sources:
            raise ValueError(f"{args.source} has {len(sources)} lines, {args.output} has {len(outputs)}")
        if args.command == "gleu":
            references = [read_tokens(path) for path in args.reference]
            print(f"GLEU {100 * corpus_gleu(sources, outputs, references, args.draws, args.seed):.2f}")
        else:
            print(f"edit ratio {100 * mean_edit_ratio(sources, outputs):.2f} %")
    except (OSError, ValueError) as error:
        print(f"aggdec-score: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
