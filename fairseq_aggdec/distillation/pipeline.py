"""From a data-bin to a distilled data-bin; what `aggdec distill` does."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.distillation.data_bin import DataBin
from fairseq_aggdec.distillation.decoding import decode_shard
from fairseq_aggdec.distillation.gathering import find_shards, gather_shards
from fairseq_aggdec.distillation.generated_targets import gather_generated
from fairseq_aggdec.distillation.settings import SearchOptions, ShardSettings
from fairseq_aggdec.distillation.shard_file import ShardName
from fairseq_aggdec.distillation.translator import Translator, fingerprints
from fairseq_aggdec.distillation.writing import DistilledSplit, read_record, record_of, write_data_bin
from fairseq_aggdec.errors import AggdecError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DecodingOptions:
    """How the teacher runs.

    Attributes:
        max_tokens: limit of a batch, in source tokens with padding.
        batch_size: limit of a batch, in sentences.
        max_source_len: longer sources (EOS included) are skipped; None: what the models take.
        precision: see `translator.PRECISIONS`.
        search: the beam search.
    """

    max_tokens: int
    batch_size: int | None
    max_source_len: int | None
    precision: str
    search: SearchOptions


@dataclass(frozen=True)
class Distillation:
    """One distilled folder in the making.

    Attributes:
        data: the original data.
        output: the folder to be made; shards are kept beside it, in `OUTPUT.shards`.
        splits: what to distil: the training splits, and perhaps others.
        keep_skipped: skipped sentences stay, with their original target.
    """

    data: DataBin
    output: Path
    splits: Sequence[str]
    keep_skipped: bool = False

    @property
    def shards_folder(self) -> Path:
        """Where the shards are kept."""
        return self.output.with_name(self.output.name + ".shards")

    def decode(self, checkpoints: str, options: DecodingOptions, device: torch.device, shard: int, shards: int) -> None:
        """Decodes one shard of each split; a single shard is gathered at once.

        Raises:
            AggdecError: something in the input does not fit; see the parts.
        """
        teacher_files = fingerprints(checkpoints)
        data = {split: self.data.fingerprint(split) for split in self.splits}
        teacher = Translator(checkpoints, self.data, options.search, device, options.precision)
        longest = min(teacher.longest_source, options.max_source_len or teacher.longest_source)
        settings = [
            ShardSettings(
                split,
                data[split],
                teacher_files,
                longest,
                options.max_tokens,
                options.batch_size,
                options.precision,
                options.search,
            )
            for split in self.splits
        ]
        record = read_record(self.output)
        if record is not None:
            self._is_complete(record, {each.split: _origin(each) for each in settings})
            return
        for each in settings:
            decode_shard(ShardName(self.shards_folder, each.split, shard, shards), each, self.data, teacher)
        if shards == 1:
            self.gather(1)

    def refuse_further_shards(self) -> None:
        """For a gathering that takes the splits by default.

        Raises:
            AggdecError: a split that would not be gathered has shards, too.
        """
        names = {name.split for name in ShardName.all_in(self.shards_folder)}
        if further := sorted(names - set(self.splits)):
            all_of_them = ",".join([*self.splits, *further])
            raise AggdecError(
                f"{self.shards_folder}: has shards of {', '.join(further)}, too; say --subset {all_of_them} to gather "
                f"them, --subset {','.join(self.splits)} to leave them out"
            )

    def gather(self, shards: int | None = None, expected: Mapping[str, Any] | None = None) -> None:
        """Puts the shards together and writes the folder.

        Args:
            shards: how many there are; None: as their file names say.
            expected: settings (names of `ShardSettings` and `SearchOptions`) that the shards must have.

        Raises:
            AggdecError: a shard is missing or does not fit; nothing is written.
        """
        record = read_record(self.output)
        if record is not None and not self.shards_folder.is_dir():
            logger.info(f"{self.output} is complete")
            return
        splits = []
        for split in self.splits:
            names = find_shards(self.shards_folder, split, shards)
            settings, targets = gather_shards(names, self.data)
            if expected and (difference := settings.difference(_changed(settings, expected), "there", "asked for")):
                raise AggdecError(f"{names[0]}: was decoded with other settings ({difference})")
            splits.append(DistilledSplit(split, targets, _origin(settings)))
        self._write(splits)

    def gather_generate_output(self, files: Sequence[Path], max_source_len: int | None = None) -> None:
        """Takes the targets from outputs of fairseq-generate.

        Args:
            files: what it printed for the one split.
            max_source_len: longer sources (EOS included) may be missing there.

        Raises:
            AggdecError: a sentence is missing or damaged, or there are several splits; nothing is written.
        """
        if len(self.splits) > 1:
            raise AggdecError(
                f"--from-generate takes one split at a time: say --subset {' or --subset '.join(self.splits)}; the "
                "next one from the folder that this makes"
            )
        split = self.splits[0]
        targets = gather_generated(files, self.data, split, max_source_len)
        origin = {"data": self.data.fingerprint(split), "generated": [path.name for path in files]}
        self._write([DistilledSplit(split, targets, origin)])

    def _write(self, splits: Sequence[DistilledSplit]) -> None:
        record = read_record(self.output)
        if record is not None:
            if record != record_of(splits, self.keep_skipped):
                raise AggdecError(f"{self.output}: is there, made in another way; delete it or choose another folder")
            logger.info(f"{self.output} is complete")
            return
        write_data_bin(self.output, self.data, splits, self.keep_skipped)
        for split in splits:
            skipped = sum(target is None for target in split.targets)
            fate = "kept with their original target" if self.keep_skipped else "left out"
            logger.info(
                f"{split.split}: {len(split.targets) - skipped:,} of {len(split.targets):,} sentences distilled"
                + (f", {skipped:,} skipped ones {fate}" if skipped else "")
            )
        logger.info(f"{self.output} is complete")

    def _is_complete(self, record: dict[str, Any], origins: dict[str, dict[str, Any]]) -> None:
        same = record["keep_skipped"] == self.keep_skipped and record["splits"].keys() == origins.keys()
        for split, origin in origins.items() if same else ():
            same = same and all(record["splits"][split].get(name) == value for name, value in origin.items())
        if not same:
            raise AggdecError(f"{self.output}: is there, made in another way; delete it or choose another folder")
        logger.info(f"{self.output} is complete")


def shard_of_environment(environment: Mapping[str, str] = os.environ) -> tuple[int, int] | None:
    """Shard and number of shards as torchrun's RANK and WORLD_SIZE; None outside torchrun."""
    if "RANK" in environment and "WORLD_SIZE" in environment:
        return int(environment["RANK"]), int(environment["WORLD_SIZE"])
    return None


def device_of_environment(
    cpu: bool, precision: str | None = None, environment: Mapping[str, str] = os.environ
) -> torch.device:
    """A GPU if there is one, under torchrun that of LOCAL_RANK, else the CPU.

    Raises:
        AggdecError: the CPU, and half precision.
    """
    if cpu or not torch.cuda.is_available():
        if precision == "fp16":
            raise AggdecError("--fp16 is for GPUs; take --bf16 where the processor multiplies bfloat16, or neither")
        return torch.device("cpu")
    device = torch.device("cuda", int(environment.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def _origin(settings: ShardSettings) -> dict[str, Any]:
    values = asdict(settings)
    del values["split"]
    return values


def _changed(settings: ShardSettings, values: Mapping[str, Any]) -> ShardSettings:
    search = {name: value for name, value in values.items() if hasattr(settings.search, name)}
    others = {name: value for name, value in values.items() if name not in search}
    return replace(settings, search=replace(settings.search, **search), **others)
