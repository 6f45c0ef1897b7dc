"""Writing distilled data as a folder that fairseq-train reads."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary, indexed_dataset

from fairseq_aggdec.distillation.data_bin import DataBin, Tokens
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import folder_written_whole
from fairseq_aggdec.structured_files import read_json

logger = logging.getLogger(__name__)

RECORD = "distillation.json"
"""the file that records how the folder was made"""
SKIPPED = "distillation.skipped.tsv"
"""the file with a line for each skipped sentence: split, number, number of source tokens, whether it was kept"""


@dataclass(frozen=True)
class DistilledSplit:
    """New targets for one split.

    Attributes:
        split: the split's name.
        targets: the target of each sentence; None where the teacher skipped it.
        origin: for the record, how the targets were made, in JSON values.
    """

    split: str
    targets: Sequence[Tokens | None]
    origin: dict[str, Any]

    @property
    def skipped(self) -> list[int]:
        """The numbers of the sentences that the teacher skipped."""
        return [number for number, target in enumerate(self.targets) if target is None]


def write_data_bin(folder: Path, data: DataBin, splits: Sequence[DistilledSplit], keep_skipped: bool) -> None:
    """Writes a folder, which has its name only when it is complete.

    All other splits, the dictionaries and other files of the original folder are copied. No times or machines are
    recorded: the same targets give the same bytes.

    Args:
        folder: the folder to make.
        data: the original data.
        splits: the distilled splits.
        keep_skipped: skipped sentences stay with their original target; else they are left out on both sides.

    Raises:
        AggdecError: another process is writing the folder.
    """
    with folder_written_whole(folder) as partial:
        _write_files(partial, data, splits, keep_skipped)


def _write_files(partial: Path, data: DataBin, splits: Sequence[DistilledSplit], keep_skipped: bool) -> None:
    _copy_rest(data, partial, {split.split for split in splits})
    lines = []
    for split in splits:
        sources = data.source(split.split)
        fate = "original target kept" if keep_skipped else "left out"
        lines += [f"{split.split}\t{number}\t{sources.sizes[number]}\t{fate}\n" for number in split.skipped]
        _write_split(split, data, partial, keep_skipped)
    (partial / SKIPPED).write_text("".join(lines), encoding="utf-8")
    (partial / RECORD).write_text(_as_text(record_of(splits, keep_skipped)), encoding="utf-8")


def record_of(splits: Iterable[DistilledSplit], keep_skipped: bool) -> dict[str, Any]:
    """The content of the file `RECORD`."""
    counts = {
        split.split: {"sentences": len(split.targets), "skipped": len(split.skipped), **split.origin}
        for split in splits
    }
    return {"keep_skipped": keep_skipped, "splits": counts}


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of a folder; None if there is no such folder.

    Raises:
        AggdecError: aggdec distill has not made that folder.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    path = folder / RECORD
    if not path.is_file():
        raise AggdecError(f"{folder}: is there, and was not made by aggdec distill; choose another folder")
    record: dict[str, Any] = read_json(path, "delete the folder, or choose another")
    return record


def _as_text(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, sort_keys=True) + "\n"


def _copy_rest(data: DataBin, folder: Path, distilled: set[str]) -> None:
    """Copies all files but those of the distilled splits, whose raw text or alignments would now be wrong."""
    for path in sorted(data.folder.iterdir()):
        if not path.is_file() or path.name in (RECORD, SKIPPED):
            continue
        if path.name.split(".")[0] not in distilled:
            shutil.copyfile(path, folder / path.name)
        elif not path.name.startswith(f"{path.name.split('.')[0]}.{data.pair}."):
            logger.warning(f"{path} is not copied: it does not fit the distilled targets")


def _write_split(split: DistilledSplit, data: DataBin, folder: Path, keep_skipped: bool) -> None:
    sources, originals = data.source(split.split), data.target(split.split)
    output = DataBin(folder, data.source_lang, data.target_lang)
    pairs = enumerate(split.targets)
    if keep_skipped or not split.skipped:
        for path in sources.files:
            shutil.copyfile(path, folder / path.name)
        targets = (originals[number] if target is None else target for number, target in pairs)
    else:
        kept = (sources[number] for number, target in enumerate(split.targets) if target is not None)
        write_side(output.prefix(split.split, data.source_lang), kept, data.source_dictionary)
        targets = (target for _, target in pairs if target is not None)
    write_side(output.prefix(split.split, data.target_lang), targets, data.target_dictionary)


def write_side(prefix: Path, sentences: Iterable[Tokens], dictionary: Dictionary) -> None:
    """Writes one side of a split as fairseq-preprocess does."""
    builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", vocab_size=len(dictionary))
    for sentence in sentences:
        builder.add_item(torch.from_numpy(sentence))
    builder.finalize(f"{prefix}.idx")
