"""`aggdec-score`: GLEU and edit ratio of files, or a table of everything an experiment has decoded."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sacrebleu
from tabulate import tabulate

from fairseq_aggdec.data.preparation import read_config
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.evaluation.bleu import detokenised_bleu
from fairseq_aggdec.evaluation.edit_ratio import edit_ratio
from fairseq_aggdec.evaluation.generate_file import join_subwords, read_generate_file
from fairseq_aggdec.evaluation.gleu import corpus_gleu
from fairseq_aggdec.files import read_text_lines

Lines = list[list[str]]


def read_tokens(path: Path) -> Lines:
    """Returns a file's lines, split at spaces."""
    return [line.split() for line in read_text_lines(path)]


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


@dataclass(frozen=True)
class ReferenceSet:
    """A test set as its outputs are judged."""

    sources: Lines
    """tokens"""
    references: Sequence[Lines]
    """tokens, one list a reference"""
    text: Sequence[Sequence[str]]
    """the references before tokenisation"""
    language: str
    """of the references"""

    def only(self, numbers: Sequence[int]) -> ReferenceSet:
        """Returns the set of the sentences with these numbers."""
        sources = [self.sources[number] for number in numbers]
        references = [[part[number] for number in numbers] for part in self.references]
        return ReferenceSet(sources, references, [[part[n] for n in numbers] for part in self.text], self.language)


def metric(name: str, test: ReferenceSet, outputs: Lines) -> float:
    """Returns a metric of tokenised outputs, in percent; `sacrebleu` is that of running text."""
    text = [" ".join(line) for line in outputs]
    references = [[" ".join(line) for line in part] for part in test.references]
    metrics: dict[str, Callable[[], float]] = {
        "sacrebleu": lambda: detokenised_bleu(text, test.text, test.language),
        # the text is tokenised already
        "bleu": lambda: sacrebleu.corpus_bleu(text, references, tokenize="none", force=True).score,
        "ter": lambda: sacrebleu.corpus_ter(text, references).score,
        "gleu": lambda: 100 * corpus_gleu(test.sources, outputs, test.references),
        "edit-ratio": lambda: 100 * mean_edit_ratio(test.sources, outputs),
        "unchanged": lambda: 100 * unchanged(test.sources, outputs),
        "exact": lambda: 100 * exact(outputs, test.references),
    }
    if name not in metrics:
        raise AggdecError(f"unknown metric {name!r}: choose from {', '.join(metrics)}")
    return float(metrics[name]())


_TITLES = {
    "gleu": "GLEU",
    "bleu": "BLEU",
    "ter": "TER",
    "edit-ratio": "edit ratio %",
    "unchanged": "unchanged %",
    "exact": "equals a reference %",
}


def subsets(config: dict[str, Any]) -> dict[str, str]:
    """Returns the names of the test sets by fairseq's names of them: `test`, `test1`, ..."""
    names = {"valid": "valid", "test": "test"}
    return names | {f"test{number}": item["name"] for number, item in enumerate(config.get("test_sets", []), start=1)}


def experiment_tables(config: dict[str, Any], work: Path) -> str:
    """Returns a table for each decoded test set, a row for each decoding; for tasks that edit, doing nothing first.

    Source, outputs and references are compared in the tokens that the model reads and writes; `sacrebleu` compares
    running text.
    """
    metrics = config["score"]
    source_side, target_side = config["languages"]["source"], config["languages"]["target"]
    tables = []
    for subset, name in subsets(config).items():
        files = sorted((work / "decode" / subset).glob(f"*/generate-{subset}.txt"))
        if not files:
            continue
        reference_files = sorted((work / "tok").glob(f"{name}.ref*")) or [work / "tok" / f"{name}.{target_side}"]
        test = ReferenceSet(
            sources=read_tokens(work / "tok" / f"{name}.{source_side}"),
            references=[read_tokens(file) for file in reference_files],
            text=[read_text_lines(work / "text" / file.name) for file in reference_files],
            language=target_side,
        )
        size = len(test.sources)
        rows: list[list[Any]] = []
        if "edit-ratio" in metrics:  # a task where doing nothing is something
            rows.append(["source, unchanged", *(metric(item, test, test.sources) for item in metrics)])
        for file in files:
            generated = read_generate_file(file)
            outputs = [join_subwords(item.hypothesis).split() for item in generated.values()]
            # sentences that fairseq skipped as too long are left out of the row
            label = file.parent.name if len(outputs) == size else f"{file.parent.name} ({len(outputs)} sentences)"
            rows.append([label, *(metric(item, test.only(list(generated)), outputs) for item in metrics)])
        headers = [f"{name} ({size})", *(_TITLES.get(item, item) for item in metrics)]
        tables.append(tabulate(rows, headers=headers, floatfmt=".2f"))
    if not tables:
        raise AggdecError(f"nothing is decoded in {work / 'decode'}: run scripts/decode.sh first")
    return "\n\n".join(tables)


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Prints the scores; see --help.

    Raises:
        AggdecError: a file is missing or does not fit the others.
    """
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
    if args.command == "experiment":
        print(experiment_tables(read_config(args.config), args.work))
        return
    sources, outputs = read_tokens(args.source), read_tokens(args.output)
    if len(sources) != len(outputs) or not sources:
        raise AggdecError(f"{args.source} has {len(sources)} lines, {args.output} has {len(outputs)}")
    if args.command == "gleu":
        references = [read_tokens(path) for path in args.reference]
        print(f"GLEU {100 * corpus_gleu(sources, outputs, references, args.draws, args.seed):.2f}")
    else:
        print(f"edit ratio {100 * mean_edit_ratio(sources, outputs):.2f} %")


if __name__ == "__main__":
    main()
