"""Scores all decoded outputs of an experiment by the metrics in its prepare.py."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from pathlib import Path

from fairseq_aggdec.data import subwords
from fairseq_aggdec.data.experiment import Experiment, TestSet
from fairseq_aggdec.data.text_files import write_lines
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.generate_file import join_subwords
from fairseq_aggdec.lab.evaluation.metrics import all_metrics, choose_metrics
from fairseq_aggdec.lab.evaluation.reference_set import ReferenceSet, read_outputs, read_reference_set
from fairseq_aggdec.lab.evaluation.score_table import ScoreTable


def subsets(config: Experiment) -> dict[str, TestSet]:
    """Returns the settings of the test sets by fairseq's names `valid`, `test`, `test1`, ...

    The M2 files of `valid` and `test` come from the field `m2`, those of others from their own entries.
    """
    sets = {name: TestSet(name, m2=config.m2.get(name)) for name in ("valid", "test")}
    return sets | {f"test{number}": item for number, item in enumerate(config.test_sets, start=1)}


def experiment_set(config: Experiment, item: TestSet, work: Path, data: Path) -> ReferenceSet:
    """Returns a test set of an experiment.

    Args:
        config: the experiment's `prepare.py`.
        item: settings of the test set.
        work: the experiment's work folder.
        data: folder of the data sets.

    Raises:
        AggdecError: a file is empty, or files do not belong together.
    """
    tokens, (source_side, target_side) = work / "tok", config.sides
    reference_files: list[Path] = []
    if item.has_references:
        reference_files = sorted(tokens.glob(f"{item.name}.ref*")) or [tokens / f"{item.name}.{target_side}"]
    text_files = [work / "text" / file.name for file in reference_files]
    language = config.language_of(target_side) or target_side  # of text that is tokenised already, the side tells it
    m2_file = data / item.m2 if item.m2 else None
    return read_reference_set(tokens / f"{item.name}.{source_side}", reference_files, text_files, language, m2_file)


def subword_joiner(config: Experiment, work: Path) -> Callable[[str], str]:
    """Returns the function that joins an experiment's subwords to text."""
    if not config.gpt2:
        return join_subwords
    encoder = subwords.gpt2(work / "data-bin/encoder.json", work / "data-bin/vocab.bpe")
    return lambda line: str(encoder.decode(line))


def experiment_tables(
    config: Experiment,
    work: Path,
    data: Path,
    only: Container[tuple[str, str]] | None = None,
    written: Path | None = None,
) -> list[ScoreTable]:
    """Returns a table for each decoded test set, with a row for each decoding.

    For editing tasks, the first row has the scores of the unchanged source. All metrics compare the tokens that the
    model reads and writes, except `sacrebleu`, which compares running text.

    Args:
        config: the experiment's `prepare.py`.
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
        metrics = list(config.score)
        if not item.has_references:  # then what compares outputs with sources is left
            metrics = [name for name, metric in all_metrics().items() if name in metrics and not metric.missing(test)]
        table = ScoreTable(item.name, test, choose_metrics(metrics, test))
        if "edit-ratio" in config.score:  # an editing task
            table.add("source, unchanged", dict(enumerate(test.sources)))
        for file in files:
            outputs = read_outputs(file, test.size, join)
            table.add(file.parent.name, outputs)
            if written:
                write_outputs(outputs, test.size, written / item.name / f"{file.parent.name}.txt")
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
