"""Scores all decoded outputs of an experiment by the metrics in its prepare.yaml."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any

from fairseq_aggdec.data import subwords
from fairseq_aggdec.data.m2_file import read_m2
from fairseq_aggdec.data.text_files import write_lines
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.lab.evaluation.generate_file import join_subwords
from fairseq_aggdec.lab.evaluation.metrics import all_metrics, choose_metrics
from fairseq_aggdec.lab.evaluation.reference_set import ReferenceSet, check_sources, read_outputs, read_tokens
from fairseq_aggdec.lab.evaluation.score_table import ScoreTable


def subsets(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the settings of the test sets by fairseq's names `valid`, `test`, `test1`, ...

    The M2 files of `valid` and `test` come from the field `m2`, those of others from their own entries. A test set
    whose entry names a source and no references has none.
    """
    gold = config.get("m2", {})
    sets = {name: {"name": name} | ({"m2": gold[name]} if name in gold else {}) for name in ("valid", "test")}
    return sets | {f"test{number}": item for number, item in enumerate(config.get("test_sets", []), start=1)}


def experiment_set(config: dict[str, Any], item: dict[str, Any], work: Path, data: Path) -> ReferenceSet:
    """Returns a test set of an experiment.

    Args:
        config: the experiment's `prepare.yaml`.
        item: settings of the test set; `m2` names its M2 file in the folder of the data sets, if it has one.
        work: the experiment's work folder.
        data: folder of the data sets.
    """
    name = item["name"]
    source_side, target_side = config["languages"]["source"], config["languages"]["target"]
    reference_files: list[Path] = []
    if _has_references(item):
        reference_files = sorted((work / "tok").glob(f"{name}.ref*")) or [work / "tok" / f"{name}.{target_side}"]
    source_file = work / "tok" / f"{name}.{source_side}"
    sources = read_tokens(source_file)
    tokenizer_language = (
        config.get("tokenizer_language") or target_side
    )  # the sides may have names that are no languages
    if isinstance(tokenizer_language, dict):
        tokenizer_language = tokenizer_language[target_side]
    m2_file = data / item["m2"] if "m2" in item else None
    gold = [] if m2_file is None else read_m2(m2_file)
    if m2_file is not None:
        check_sources(sources, gold, source_file, m2_file)
    return ReferenceSet(
        sources=sources,
        references=[read_tokens(file) for file in reference_files],
        text=[read_text_lines(work / "text" / file.name) for file in reference_files],
        language=tokenizer_language,
        m2=gold,
        m2_file=m2_file,
    )


def _has_references(item: dict[str, Any]) -> bool:
    return "source" not in item or bool(item.get("references"))


def subword_joiner(config: dict[str, Any], work: Path) -> Callable[[str], str]:
    """Returns the function that joins an experiment's subwords to text."""
    if "gpt2" not in (config.get("bpe") or {}):
        return join_subwords
    encoder = subwords.gpt2(work / "data-bin/encoder.json", work / "data-bin/vocab.bpe")
    return lambda line: str(encoder.decode(line))


def experiment_tables(
    config: dict[str, Any],
    work: Path,
    data: Path,
    only: Container[tuple[str, str]] | None = None,
    written: Path | None = None,
) -> list[ScoreTable]:
    """Returns a table for each decoded test set, with a row for each decoding.

    For editing tasks, the first row has the scores of the unchanged source. All metrics compare the tokens that the
    model reads and writes, except `sacrebleu`, which compares running text.

    Args:
        config: the experiment's `prepare.yaml`.
        work: its work folder.
        data: folder of the data sets.
        only: pairs of test set and decoding to score; None for all.
        written: a folder for the outputs as they are scored, SET/DECODING.txt, one sentence a line; None for none.

    Raises:
        AggdecError: nothing is decoded, a metric is unknown, or files do not belong together.
    """
    tables = []
    join = subword_joiner(config, work)
    for subset, item in subsets(config).items():
        files = sorted((work / "decode" / subset).glob(f"*/generate-{subset}.txt"))
        files = [file for file in files if only is None or (subset, file.parent.name) in only]
        if not files:
            continue
        test = experiment_set(config, item, work, data)
        metrics = config["score"]
        if not _has_references(item):  # then what compares outputs with sources is left
            metrics = [name for name, metric in all_metrics().items() if name in metrics and not metric.missing(test)]
        table = ScoreTable(item["name"], test, choose_metrics(metrics, test))
        if "edit-ratio" in config["score"]:  # an editing task
            table.add("source, unchanged", dict(enumerate(test.sources)))
        for file in files:
            outputs = read_outputs(file, test.size, join)
            table.add(file.parent.name, outputs)
            if written:
                write_outputs(outputs, test.size, written / item["name"] / f"{file.parent.name}.txt")
        tables.append(table)
    if not tables:
        raise AggdecError(f"nothing is decoded in {work / 'decode'}: run scripts/decode.sh first")
    return tables


def write_outputs(outputs: Mapping[int, list[str]], size: int, file: Path) -> None:
    """Writes outputs by sentence number as lines of tokens, for a scorer outside.

    Raises:
        AggdecError: sentences are missing: line numbers would not be those of the test set.
    """
    if missing := size - len(outputs):
        raise AggdecError(f"{file}: {missing} of {size} sentences were not decoded; they may be too long for the model")
    write_lines(file, (" ".join(outputs[number]) for number in range(size)))
