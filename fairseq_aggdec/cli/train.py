"""Train: `aggdec drafter`, `distill`, `shrink`, `average`, `export`."""

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction, arg, create_mutex_group

from fairseq_aggdec.bulk.settings import DECODINGS, SHARD_SENTENCES
from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import NO_DEFAULT, Count, Flag, Many, Maybe, Verb
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.options import SearchOptions

_LENGTH = create_mutex_group(required=False, title="length")


@dataclass(kw_only=True)
class Drafter(options.Languages, Verb):
    """Train a block drafter for a model: distil its training set, train, average, measure beside
    greedy decoding, choose the block size.

    It first says how long each stage will take on this machine, and how many tokens an iteration
    the drafter must bring to gain anything; what it will bring is not known before. After it was
    stopped, the same command goes on. After it has ended, the same command with more --minutes or
    --updates trains on; both are totals. FOLDER/drafter.pt is the drafter; all else in FOLDER is
    needed to train on.
    """

    verifier: Path  # checkpoint of the model to draft for
    data: Path  # its data-bin, with the splits train and valid
    out: Path  # folder to make
    #: time for all that the command does; it ends a little later where the machine gets slower meanwhile (default: 30)
    minutes: Annotated[float | None, options.number(float, 1), NO_DEFAULT, _LENGTH] = (
        None
    )
    #: in place of --minutes: distil the whole training set, and train so many updates
    updates: Annotated[Maybe[Count], _LENGTH] = None
    decoder_layers: Count = 2  # of the drafter, at most the verifier's
    block_size: Count = 10  # tokens of a draft, at most
    cpu: Flag = False  # use no GPU
    begun = 0.0

    def run(self) -> None:
        self.begun = time.monotonic()
        if self.updates is None:
            self.minutes = self.minutes or 30.0
        if not self.verifier.is_file():
            raise AggdecError(
                f"--verifier {self.verifier}: no such file; name one checkpoint, no ensemble"
            )
        # the training that it runs ends too
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        options.start(tells="fairseq_aggdec")
        from fairseq_aggdec.lab.bench.drafter_speed import drafter_speed
        from fairseq_aggdec.train.drafter.stages import make_drafter

        make_drafter(self, drafter_speed)


@dataclass(kw_only=True)
class Binarize(options.Languages, Verb):
    """Make fairseq's binary data out of text for an imported model: of a split a file of sources, a
    sentence a line, and perhaps one of targets."""

    model: Positional[Path]  # folder of aggdec import-hf
    out: Positional[Path]  # folder to make
    # SOURCES, or SOURCES TARGETS: a drafter needs no targets
    train: Many[Path] = field(default_factory=list)
    valid: Many[Path] = field(default_factory=list)  # the same
    test: Many[Path] = field(default_factory=list)  # the same

    def run(self) -> None:
        options.start()
        from fairseq_aggdec.bulk.binarizing import binarize

        texts = {
            split: files
            for split in ("train", "valid", "test")
            if (files := getattr(self, split))
        }
        binarize(self.model, self.out, (self.source_lang, self.target_lang), texts)


@dataclass(kw_only=True)
class Distill(options.Bulk):
    """Decode the training split (or others) with a teacher, and write a data folder with the
    teacher's translations as targets; other splits and the dictionaries stay.

    To go on after a command was killed, start it again. Shards are kept in OUTPUT.shards; OUTPUT
    exists only when it is complete. Several commands with RANK and WORLD_SIZE in the environment,
    as under torchrun, share the shards: start the command once more, without these two, to put
    them together.
    """

    data: Positional[Path]  # folder made by fairseq-preprocess
    output: Positional[Path]  # folder to make
    teacher: str  # checkpoint, or several joined by ':' that decode as an ensemble
    #: splits to distil, such as train,valid (default: train, train1, ...)
    subset: Annotated[UseAppendAction[list[str]], arg(metavar="SPLIT[,SPLIT...]")] = (
        field(default_factory=list)
    )
    #: number of threads of a worker (default: the processor's cores, shared out among the workers)
    threads: Maybe[Count] = None
    # number of different sources in a shard, which a killed run loses
    shard_sentences: Count = SHARD_SENTENCES
    beam: Count = 5  # as in fairseq-generate
    #: beam: fairseq's own search; aggressive-beam: the same targets by this plugin's, which is faster in small batches
    decoding: Annotated[str, options.choice(DECODINGS)] = DECODINGS[0]
    # skip longer sources, EOS included (default: what the teacher takes)
    max_source_len: Maybe[Count] = None

    def run(self) -> None:
        options.start(None, self.teacher, tells="fairseq_aggdec")
        from fairseq_aggdec.bulk.data_bin import DataBin
        from fairseq_aggdec.train.distilling import Teacher, distil

        data = DataBin.find(self.data, self.source_lang, self.target_lang)
        splits = list(
            dict.fromkeys(split for given in self.subset for split in given.split(","))
        )
        threads = self.threads or (
            max(1, (os.cpu_count() or 1) // self.workers) if self.workers > 1 else None
        )
        search = SearchOptions(self.beam, **self.given(options.Search))
        teacher = Teacher(
            self.teacher,
            data,
            search,
            self.decoding,
            self.precision or "fp32",
            self.cpu,
            threads,
        )
        limits = (
            self.max_tokens,
            self.batch_size,
            self.max_source_len,
            self.shard_sentences,
        )
        distil(
            teacher,
            self.output,
            splits or data.training_splits(),
            self.workers,
            *limits,
        )


@dataclass(kw_only=True)
class Shrink(Verb):
    """Write a checkpoint with some decoder layers of another one, to decode with or to train on
    (--finetune-from-model)."""

    # checkpoint of a Transformer or BART model, of any version of fairseq
    checkpoint: Positional[Path]
    output: Positional[Path]  # file to write
    decoder_layers_to_keep: str  # numbers from 0, separated by commas, such as 0,11

    def run(self) -> None:
        from fairseq_aggdec.train.shrinking import shrink_file

        print(
            shrink_file(self.checkpoint, self.output, self.decoder_layers_to_keep),
            file=sys.stderr,
        )


@dataclass(kw_only=True)
class Average(Verb):
    """Write the mean of a training run's last checkpoints, without its optimizer."""

    folder: Positional[Path]  # folder with the checkpoints of one training run
    last: Count = 5  # number of checkpoints to average
    output: Path  # file to write

    def run(self) -> None:
        from fairseq_aggdec.train.averaging import last_checkpoints, write_average

        paths = last_checkpoints(self.folder, self.last)
        write_average(paths, self.output)
        print(
            f"mean of {', '.join(path.name for path in paths)} in {self.output}",
            file=sys.stderr,
        )


@dataclass(kw_only=True)
class Export(Verb):
    """Write weights (half precision), dictionaries and BPE codes of a trained model into one folder."""

    checkpoint: Positional[Path]  # checkpoint of the trained model
    folder: Positional[Path]  # folder to write
    data: Path  # folder with the dict.*.txt and, if there are any, the BPE codes
    fp32: Flag = False  # keep single precision
    #: leave out the weights that this checkpoint has as well: a drafter with a frozen encoder takes them from its
    #: verifier, and then works with that verifier only
    without_shared: Annotated[Maybe[Path], arg(metavar="VERIFIER")] = None
    #: of a drafter: the number of tokens to draft where decoding has no --block-size (default: as in CHECKPOINT)
    decoding_block_size: Maybe[int] = None

    def run(self) -> None:
        import torch

        from fairseq_aggdec.train.exporting import export

        dtype = torch.float32 if self.fp32 else torch.float16
        export(
            self.checkpoint,
            self.folder,
            self.data,
            dtype,
            self.without_shared,
            self.decoding_block_size,
        )
        size = sum(file.stat().st_size for file in self.folder.iterdir())
        print(f"{self.folder}: {size / 1e6:.1f} MB")
