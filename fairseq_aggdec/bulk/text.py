"""`aggdec decode`: text files cut into shards, and what decodes their lines."""

import argparse
import hashlib
import logging
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.bulk.folder import Decoded, Shard, ShardFolder
from fairseq_aggdec.bulk.running import (
    decode_shards,
    device_of_environment,
    rank_of_environment,
)
from fairseq_aggdec.bulk.settings import STDIN
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.files import (
    file_sha256,
    fingerprints,
    refuse_overwriting,
    written_whole,
)
from fairseq_aggdec.generation.options import given_search_options
from fairseq_aggdec.hub.settings import FILE
from fairseq_aggdec.model import Model, load

logger = logging.getLogger(__name__)

_NOT_RECORDED = ("data", "path", "model", "input", "output", "workers")
"""options that do not change the outputs, or whose files are recorded by their fingerprints"""
_SKIPPED = "skipped.tsv"
"""the list of all lines that could not be decoded: file, line (from 1), why"""


@dataclass(frozen=True)
class TextShard(Shard):
    """Consecutive lines of a file."""

    path: str
    """the file's absolute path"""
    number: int
    first_line: int
    """counted from 1"""
    lines: int
    offset: int
    """bytes before it"""
    length: int
    """in bytes"""
    fingerprint: str
    """the SHA-256 of its bytes"""
    drafts: "TextShard | None" = None
    """the drafts of its lines, from --draft-file"""

    @property
    def origin(self) -> str:
        return Path(self.path).name

    @property
    def size(self) -> int:
        return self.lines

    def read(self) -> list[bytes]:
        """Its lines, without line feeds.

        Raises:
            AggdecError: the file has changed since it was cut into shards.
        """
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            data = file.read(self.length)
        if hashlib.sha256(data).hexdigest() != self.fingerprint:
            raise AggdecError(
                f"{self.path}: has been changed since this run began; start it again"
            )
        lines = data.split(b"\n")
        return lines if lines[-1] else lines[:-1]


def cut(path: Path, lines: int) -> Iterator[TextShard]:
    """The shards of a file, at least one.

    Args:
        path: the file; only a line feed ends a line.
        lines: of a shard; the last shard can have fewer.

    Raises:
        AggdecError: the file is gzipped, or a pipe, of which workers cannot read parts.
        OSError: it cannot be read.
    """
    if path.is_fifo():
        raise AggdecError(
            f"{path}: is a pipe; give a file, or use the standard input: ... | aggdec decode ... --input -"
        )
    number = first_line = offset = 0
    with path.open("rb") as file:
        if file.peek(2)[:2] == b"\x1f\x8b":
            raise AggdecError(
                f"{path}: is gzipped; unpack it, or pipe it: zcat {path} | aggdec decode ... --input -"
            )
        while (chunk := list(islice(file, min(lines, sys.maxsize)))) or not number:
            data = b"".join(chunk)
            fingerprint = hashlib.sha256(data).hexdigest()
            yield TextShard(
                str(path.resolve()),
                number,
                first_line + 1,
                len(chunk),
                offset,
                len(data),
                fingerprint,
            )
            number += 1
            first_line += len(chunk)
            offset += len(data)


@dataclass(frozen=True)
class TextWorker:
    """Decodes lines of text with a model that is loaded for the first shard."""

    args: argparse.Namespace
    """the options of `aggdec decode`"""
    options: dict[str, Any]
    """those of the plugin's task, of the tokeniser and of the subwords"""

    def decode(self, shard: TextShard) -> Decoded:
        """Decode the lines of a shard.

        An empty line stays empty. A line that is not UTF-8 or lacks its language (`Model.tag`), and one with a sentence
        that cannot be decoded, are reported; they are left empty, or where the model corrects that sentence stays as it
        was.

        Raises:
            AggdecError: an option, the data folder or a model cannot be used, or the file has changed.
            OSError: a file cannot be read.
        """
        lines: list[str] = []
        skipped: dict[int, str] = {}
        for place, line in enumerate(shard.read()):
            try:
                lines.append(line.decode("utf-8"))
                if lines[place].strip():
                    self.model.tag(lines[place])
            except UnicodeDecodeError:
                skipped[place] = "not valid UTF-8"
                lines.append("")
            except AggdecError as error:  # of its language
                skipped[place] = str(error)
                lines[place] = ""
        # empty lines, and those that cannot be read, have empty outputs
        args = self.args
        results = self.model.decode(
            lines,
            args.decoding,
            drafts=[line.decode("utf-8", "replace") for line in shard.drafts.read()]
            if shard.drafts
            else None,
            beam=args.beam,
            max_tokens=args.max_tokens,
            batch_size=args.batch_size,
            **given_search_options(args),
        )
        outputs = [result.text for result in results]
        for place, result in enumerate(results):
            if result.notes:
                skipped[place] = "; ".join(result.notes)
                # no translation; a correction may be the source
                if not self.model.corrects:
                    outputs[place] = ""
        return Decoded(
            outputs,
            [
                f"{shard.path}\t{shard.first_line + place}\t{skipped[place]}"
                for place in sorted(skipped)
            ],
        )

    @cached_property
    def model(self) -> Model:
        """The model, on the device of this process."""
        args = self.args
        torch.set_num_threads(args.threads)
        return load(
            args.path,
            args.data,
            source_lang=args.source_lang,
            target_lang=args.target_lang,
            task=args.task,
            tokenizer=args.tokenizer,
            bpe=args.bpe or "",
            longest=args.longest,
            splits=False if args.one_sentence_a_line else None,
            device=device_of_environment(args.cpu, args.precision),
            precision=args.precision or "fp32",
            **self.options,
        )


def decode_text(
    args: argparse.Namespace, options: dict[str, Any], given: dict[str, Any]
) -> None:
    """Decode the shards of this process that are not finished.

    Args:
        args: the options of `aggdec decode`, checked.
        options: those of the plugin's task, of the tokeniser and of the subwords.
        given: the options that differ from their defaults.

    Raises:
        AggdecError: a file or an option cannot be used.
    """
    rank, ranks = rank_of_environment()
    if ranks > 1 and "-" in args.input:
        raise AggdecError(
            "--input -: several commands (RANK, WORLD_SIZE) cannot share a standard input: give a file"
        )
    refuse_overwriting(args.output / _SKIPPED, map(Path, args.input))
    folder, shards = _opened(args, _settings(args, given))
    if args.draft_file is not None:
        shards = _with_drafts(shards, args)
    decode = TextWorker(args, options).decode
    decode_shards(shards[rank::ranks], folder, decode, args.workers, "lines")
    # when all is decoded, a list of what could not be
    if not all(map(folder.is_finished, shards)):
        return
    skipped = [line for shard in shards for line in folder.skipped(shard)]
    folder.write_list(_SKIPPED, skipped)
    if skipped:
        logger.warning(
            f"{len(skipped):,} lines were not decoded as a whole: their outputs are empty, or, of a corrector, as they "
            f"were; which and why: {args.output / _SKIPPED}"
        )
    for name in args.input:
        path = args.output / STDIN if name == "-" else Path(name)
        logger.info(f"{path} is decoded: cat {args.output}/{path.name}.*.txt")


def _opened(
    args: argparse.Namespace, settings: dict[str, Any]
) -> tuple[ShardFolder, list[TextShard]]:
    """The folder of outputs, and the shards of all inputs; the folder keeps the standard input as a file.

    Raises:
        AggdecError: an input cannot be cut, or the folder holds something else.
    """
    with ExitStack() as saved:
        shards: list[TextShard] = []
        inputs = {}
        for name in args.input:
            if name == "-":
                path = args.output / STDIN
                file = saved.enter_context(written_whole(path))
                with file.open("wb") as copy:
                    shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                path = file = Path(name)
            found = [
                replace(shard, path=str(path.resolve()))
                for shard in cut(file, args.shard_lines)
            ]
            shards += found
            inputs[path.name] = _fingerprint(found)
        # what is decoded already may be of another standard input, which is then kept
        return ShardFolder(args.output, settings, inputs), shards


def _with_drafts(shards: list[TextShard], args: argparse.Namespace) -> list[TextShard]:
    """The shards of the one input with those of --draft-file, line by line.

    Raises:
        AggdecError: there are several inputs, or more or fewer lines.
    """
    drafts = list(cut(Path(args.draft_file), args.shard_lines))
    given, wanted = (sum(shard.size for shard in some) for some in (drafts, shards))
    if len(args.input) > 1 or given != wanted:
        raise AggdecError(
            f"--draft-file {args.draft_file}: has {given} lines; give one --input of as many, not {wanted}"
        )
    return [
        replace(shard, drafts=draft)
        for shard, draft in zip(shards, drafts, strict=True)
    ]


def _fingerprint(shards: Sequence[TextShard]) -> str:
    """Of all lines of a file that is cut into shards."""
    return hashlib.sha256(
        "".join(shard.fingerprint for shard in shards).encode()
    ).hexdigest()


def _settings(args: argparse.Namespace, given: dict[str, Any]) -> dict[str, Any]:
    """The settings that outputs depend on; for files their fingerprints.

    Raises:
        AggdecError: a checkpoint is missing.
    """
    settings: dict[str, Any] = {
        "checkpoints": fingerprints(args.path),
        "dictionaries": [
            file_sha256(path)
            for pattern in ("dict*.txt", FILE)
            for path in sorted(Path(args.data).glob(pattern))
        ],
        "--shard-lines": args.shard_lines,
    }
    for name, value in given.items():
        if name not in _NOT_RECORDED:
            is_file = isinstance(value, str) and Path(value).is_file()
            # JSON has no such number
            if isinstance(value, float) and math.isinf(value):
                value = str(value)
            settings[option_name(name)] = file_sha256(Path(value)) if is_file else value
    return settings
