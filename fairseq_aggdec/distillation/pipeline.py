"""From a data folder to a distilled data folder: decoding shards, gathering them, writing the result."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.distillation.data_bin import DataBin
from fairseq_aggdec.distillation.distilled_folder import DistilledSplit, read_record, record_of, write_data_bin
from fairseq_aggdec.distillation.from_generate import gather_generated
from fairseq_aggdec.distillation.settings import SearchOptions, ShardSettings
from fairseq_aggdec.distillation.shard_decoding import decode_shard
from fairseq_aggdec.distillation.shard_file import ShardName
from fairseq_aggdec.distillation.shard_gathering import find_shards, gather_shards
from fairseq_aggdec.distillation.translator import Translator, fingerprints
from fairseq_aggdec.errors import AggdecError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DecodingOptions:
    """How the teacher decodes.

    Attributes:
        max_tokens: the most source tokens of a batch, padding included.
        batch_size: the most sentences of a batch; None for any number.
        max_source_len: the most tokens of a source, EOS included; longer ones are skipped. None: the models' limit.
        precision: a key of `translator.PRECISIONS`.
        search: the options of the beam search.
        decoding: one of `settings.DECODINGS`; a model that the engine does not support is decoded by `beam`.
    """

    max_tokens: int
    batch_size: int | None
    max_source_len: int | None
    precision: str
    search: SearchOptions
    decoding: str


@dataclass(frozen=True)
class Distillation:
    """The making of one distilled data folder.

    Attributes:
        data: the original data.
        output: the folder to make; shards are kept beside it, in `OUTPUT.shards`.
        splits: the splits to distil.
        keep_skipped: whether skipped sentences stay, with their original target, or are left out.
    """

    data: DataBin
    output: Path
    splits: Sequence[str]
    keep_skipped: bool = False

    @property
    def shards_folder(self) -> Path:
        """The folder of the shards."""
        return self.output.with_name(self.output.name + ".shards")

    def decode(self, checkpoints: str, options: DecodingOptions, device: torch.device, shard: int, shards: int) -> None:
        """Decodes shard number `shard` of `shards` of each split; a single shard is then gathered at once.

        Raises:
            AggdecError: a file cannot be used, or was made with other settings.
        """
        teacher_files = fingerprints(checkpoints)
        data = {split: self.data.fingerprint(split) for split in self.splits}
        teacher = Translator(
            checkpoints, self.data, options.search, device, options.precision, decoding=options.decoding
        )
        decoding = options.decoding
        if decoding != "beam" and (reason := teacher.unsupported):
            logger.warning(f"no fast engine for this teacher ({reason}): fairseq's own beam search decodes")
            decoding = "beam"
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
                decoding,
                options.search,
            )
            for split in self.splits
        ]
        record = read_record(self.output)
        if record is not None:
            self._finished(self._is_made_of(record, {each.split: _origin(each) for each in settings}))
            return
        for each in settings:
            decode_shard(ShardName(self.shards_folder, each.split, shard, shards), each, self.data, teacher)
        if shards == 1:
            self.gather(1)

    def refuse_further_shards(self) -> None:
        """Refuse to gather the default splits where other splits have shards, too.

        Raises:
            AggdecError: there are such splits; the message names them.
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
            shards: the number of shards; None: as the names of the files say.
            expected: settings that the shards must have, by their names in `ShardSettings` and `SearchOptions`.

        Raises:
            AggdecError: a shard is missing or does not fit; nothing is written.
        """
        record = read_record(self.output)
        if record is not None and not self.shards_folder.is_dir():
            self._finished()
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
        """Writes the folder with targets from outputs of fairseq-generate.

        Args:
            files: its outputs for the only split.
            max_source_len: the longest source, EOS included, that was decoded; longer ones may be missing.

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
            self._finished(record == record_of(splits, self.keep_skipped))
            return
        write_data_bin(self.output, self.data, splits, self.keep_skipped)
        for split in splits:
            skipped = len(split.skipped)
            fate = "kept with their original target" if self.keep_skipped else "left out"
            logger.info(
                f"{split.split}: {len(split.targets) - skipped:,} of {len(split.targets):,} sentences distilled"
                + (f", {skipped:,} skipped ones {fate}" if skipped else "")
            )
        self._finished()

    def _is_made_of(self, record: dict[str, Any], origins: dict[str, dict[str, Any]]) -> bool:
        """Whether a folder's record is of these splits, with targets that were made in these ways."""
        splits = record["splits"]
        return (
            record["keep_skipped"] == self.keep_skipped
            and splits.keys() == origins.keys()
            and all(splits[split].get(name) == value for split in origins for name, value in origins[split].items())
        )

    def _finished(self, same: bool = True) -> None:
        """Says that the folder is complete.

        Raises:
            AggdecError: it is not the same as the one that was to be made.
        """
        if not same:
            raise AggdecError(f"{self.output}: is there, made in another way; delete it or choose another folder")
        logger.info(f"{self.output} is complete")


def _origin(settings: ShardSettings) -> dict[str, Any]:
    values = asdict(settings)
    del values["split"]
    return values


def _changed(settings: ShardSettings, values: Mapping[str, Any]) -> ShardSettings:
    search = {name: value for name, value in values.items() if hasattr(settings.search, name)}
    others = {name: value for name, value in values.items() if name not in search}
    return replace(settings, search=replace(settings.search, **search), **others)
