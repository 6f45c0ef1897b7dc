"""Gathers the results of an experiment from its work folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairseq_aggdec.data.experiment import Experiment
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.lab.benchmarking.image_record import QUALITY, ImageRecord, Quality
from fairseq_aggdec.lab.benchmarking.machine import commit, machine, now
from fairseq_aggdec.lab.benchmarking.record import load_record, record_of
from fairseq_aggdec.lab.evaluation.experiment_scores import experiment_tables, subsets
from fairseq_aggdec.lab.evaluation.training_log import read_validations
from fairseq_aggdec.lab.reporting.counterparts import Source
from fairseq_aggdec.lab.reporting.measures import MEASURES
from fairseq_aggdec.lab.reporting.results import Decoding, Results
from fairseq_aggdec.structured_files import parse_json, read_json

STATS, COMMAND = "stats.jsonl", "command.txt"
"""files of scripts/decode.sh beside an output: that of --decoding-stats, and the command of fairseq-generate"""
TRAINING_LOG = "train/hydra_train.log"
_NO_RECORDS = {"data-bin", "checkpoints", "decode"}
"""folders that are not searched for files of aggdec bench"""


def gather(
    title: str,
    stand_in: bool,
    config: Path,
    work: Path,
    data: Path,
    command: str,
    metrics: Sequence[str] = (),
    records: Mapping[str, Path] | None = None,
    only: Sequence[Source] | None = None,
) -> Results:
    """Reads all results that the stages of an experiment have written so far.

    Args:
        title: title of the experiment.
        stand_in: whether the experiment has other data than the papers.
        config: the experiment's folder in configs/.
        work: its work folder.
        data: folder of the data sets, which has the M2 files.
        command: the command that is running, for the results.
        metrics: metrics of aggdec score beside those of prepare.py.
        records: further files of aggdec bench by name; they replace files of the same name in the work folder.
        only: compute only the scores, and read only the trainings, that these sources need; None for all scores and no
            trainings.

    Raises:
        AggdecError: there are no results yet, or a file is damaged.
    """
    scores = _scores(config, work, data, metrics, only)
    contents, given = _records(work), records or {}
    paths = {_name(path, work): path for path in contents} | dict(given)
    found = {
        name: load_record(path) if name in given else record_of(contents[path], str(path))
        for name, path in paths.items()
    }
    decodings = [read_decoding(path) for path in sorted(work.glob(f"decode/*/*/{STATS}")) if _is_whole(path.parent)]
    for record in found.values():
        record.command = _relative_paths(record.command, config, work)
    for decoding in decodings:
        decoding.command = decoding.command and _relative_paths(decoding.command, config, work)
    trainings = {source.training for source in only or () if (work / source.training / TRAINING_LOG).is_file()}
    if not scores and not found:
        raise AggdecError(f"{work}: nothing is decoded or measured there yet; run the experiment's stages first")
    return Results(
        experiment=config.name,
        title=title,
        stand_in=stand_in,
        date=now(),
        commit=commit(),
        command=_relative_paths(command, config, work),
        machine=machine(),
        scores=scores,
        decodings=decodings,
        records=found,
        images={name: _images(path.parent) for name, path in paths.items() if (path.parent / QUALITY).is_file()},
        trainings={name: read_validations(work / name / TRAINING_LOG) for name in sorted(trainings)},
    )


def _images(folder: Path) -> dict[str, Quality]:
    record = ImageRecord.load(folder)
    return {**record.quality, "bicubic": Quality(record.enlarged, [])}


def read_decoding(path: Path) -> Decoding:
    """Reads a file of --decoding-stats and adds up its counters.

    Raises:
        AggdecError: the file has another format or is not complete.
    """
    advice = "decode again"
    try:
        sentences = [parse_json(line, str(path), advice) for line in read_text_lines(path)]
        sums = {key: sum(entry[key] for entry in sentences) for key in ("iterations", "drafted", "accepted")}
        tokens = sum(entry["output_length"] + 1 for entry in sentences)
        times = [entry["seconds"] for entry in sentences]
    except (KeyError, TypeError) as error:
        raise AggdecError(f"{path}: not a whole file of --decoding-stats ({error!r}); {advice}") from error
    seconds = None if None in times else round(sum(times), 6)
    command = path.parent / COMMAND
    told = command.read_text(encoding="utf-8").strip() if command.is_file() else None
    return Decoding(
        path.parents[1].name, path.parent.name, len(sentences), tokens=tokens, seconds=seconds, command=told, **sums
    )


def _relative_paths(command: str, config: Path, work: Path) -> str:
    """A command with paths relative to the checkout, and `work/` for the folder of the work folders."""
    checkout = config.resolve().parents[1]
    for folder, name in ((work.resolve().parent, "work/"), (work.absolute().parent, "work/"), (checkout, "")):
        command = command.replace(f"{folder}/", name)
    return command


def _scores(
    config: Path, work: Path, data: Path, metrics: Sequence[str], only: Sequence[Source] | None
) -> list[dict[str, Any]]:
    settings = config / "prepare.py"
    decoded = {(path.parts[-3], path.parts[-2]) for path in work.glob("decode/*/*/generate-*.txt")}
    if only is not None:
        decoded &= {(source.set, source.label) for source in only if source.measure not in MEASURES}
    if not settings.is_file() or not decoded:
        return []
    prepared = Experiment.read(settings)
    if not prepared.score:  # the data are images
        return []
    prepared = replace(prepared, score=tuple(dict.fromkeys([*prepared.score, *metrics])))
    names = {item.name: subset for subset, item in subsets(prepared).items()}
    scores = []
    for table in experiment_tables(prepared, work, data, decoded):
        outputs = work / "decode" / names[table.name]
        table.rows = [row for row in table.rows if not (outputs / row.name).is_dir() or _is_whole(outputs / row.name)]
        scores.append(table.record() | {"subset": names[table.name]})
    return scores


def _is_whole(output: Path) -> bool:
    """Whether fairseq-generate has finished in this folder; it may have skipped sentences that are too long."""
    return any(line.startswith("Generate ") for path in output.glob("generate-*.txt") for line in read_text_lines(path))


def _records(work: Path) -> dict[Path, dict[str, Any]]:
    """The contents of all files of aggdec bench --json in the work folder, up to two folders deep."""
    candidates = [path for depth in ("*.json", "*/*.json", "*/*/*.json") for path in sorted(work.glob(depth))]
    records = {}
    for path in candidates:
        if not _NO_RECORDS & set(path.relative_to(work).parts):
            with suppress(AggdecError):
                content = read_json(path, "")
                if isinstance(content, dict) and {"runs", "source_tokens", "machine"} <= content.keys():
                    records[path] = content
    return records


def _name(path: Path, work: Path) -> str:
    return path.relative_to(work).with_suffix("").as_posix()
