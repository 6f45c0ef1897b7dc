"""Verbs of a few options each: the options, and a function of the verb's name that takes the words behind it."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import fairseq_aggdec
from fairseq_aggdec.checkout import CONFIGS, load_part
from fairseq_aggdec.cli.options import argument, option, read
from fairseq_aggdec.errors import AggdecError, on_command_line

Words = Sequence[str] | None


@dataclass(kw_only=True)
class Average:
    folder: Path = argument("folder with the checkpoints of one training run")
    last: int = option("number of checkpoints to average", 5, least=1)
    output: Path = option("file to write")


def average(argv: Words = None) -> None:
    """Write the mean of a training run's last checkpoints, without its optimizer."""
    given = read(Average, "average", argv, str(average.__doc__))
    from fairseq_aggdec.train.averaging import last_checkpoints, write_average

    paths = last_checkpoints(given.folder, given.last)
    write_average(paths, given.output)
    print(f"mean of {', '.join(path.name for path in paths)} in {given.output}", file=sys.stderr)


@dataclass(kw_only=True)
class Compare:
    first: Path = argument("generate-SUBSET.txt of one decoding", metavar="A")
    second: Path = argument("generate-SUBSET.txt of another decoding", metavar="B")
    show: int = option("most differing sentences to print", 10, least=0)


def compare(argv: Words = None) -> int:
    """Compare two outputs of fairseq-generate token by token; the exit code is 1 if more than near-ties differ."""
    given = read(Compare, "compare", argv, str(compare.__doc__))
    from fairseq_aggdec.lab.score.comparison import describe, differing, is_near_tie
    from fairseq_aggdec.lab.score.generate_file import read_generate_file

    first, second = read_generate_file(given.first), read_generate_file(given.second)
    different = differing(first, second)
    for index in different[: given.show]:
        print(describe(index, first[index], second[index]))
    near_ties = sum(is_near_tie(first[index], second[index]) for index in different)
    note = f", near-ties: {near_ties}" if near_ties else ""
    print(f"identical: {len(first) - len(different)} of {len(first)}{note}")
    return 1 if len(different) > near_ties else 0


@on_command_line()
def corrupt(argv: Words = None) -> None:
    """Make (erroneous, clean) sentence pairs from clean English text, by configs/gec_small/errors."""
    load_part("experiments.experiment").load_module(CONFIGS / "gec_small/errors/command.py").main(argv)


@dataclass(kw_only=True)
class Export:
    checkpoint: Path = argument("checkpoint of the trained model")
    folder: Path = argument("folder to write")
    data: Path = option("folder with the dict.*.txt and, if there are any, the BPE codes")
    fp32: bool = option("keep single precision", False)
    without_shared: Path | None = option(
        "leave out the weights that this checkpoint has as well: a drafter with a frozen encoder takes them from its "
        "verifier, and then works with that verifier only",
        None,
        metavar="VERIFIER",
    )
    decoding_block_size: int | None = option(
        "of a drafter: the number of tokens to draft where decoding has no --block-size (default: as in CHECKPOINT)",
        None,
        metavar="K",
    )


def export(argv: Words = None) -> None:
    """Write weights (half precision), dictionaries and BPE codes of a trained model into one folder."""
    given = read(Export, "export", argv, str(export.__doc__))
    import torch

    from fairseq_aggdec.train import exporting

    dtype = torch.float32 if given.fp32 else torch.float16
    exporting.export(given.checkpoint, given.folder, given.data, dtype, given.without_shared, given.decoding_block_size)
    size = sum(file.stat().st_size for file in given.folder.iterdir())
    print(f"{given.folder}: {size / 1e6:.1f} MB")


@dataclass(kw_only=True)
class NatStart:
    checkpoint: Path = argument("checkpoint of a Transformer encoder-decoder")
    architecture: str = argument("nonautoregressive_transformer, cmlm_transformer, levenshtein_transformer, ...")
    output: Path = option("file to write")


def nat_start(argv: Words = None) -> None:
    """Write a Transformer's weights as fairseq's non-autoregressive models take them (--finetune-from-model)."""
    given = read(NatStart, "nat-start", argv, str(nat_start.__doc__))
    load_part("experiments.nat_start").write_nat_start(given.checkpoint, given.architecture, given.output)


@dataclass(kw_only=True)
class Prepare:
    config: Path = argument("an experiment's prepare.py, such as configs/gec_small/prepare.py")
    data: Path = option("folder of the data sets")
    work: Path = option("folder for the experiment's outputs")
    workers: int = option("number of processes", 1, least=1)


def prepare(argv: Words = None) -> None:
    """Make fairseq's binary data, by an experiment's prepare.py."""
    given = read(Prepare, "prepare", argv, str(prepare.__doc__))
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    load_part("experiments.steps").prepare(given.config, given.data, given.work, given.workers)


@dataclass(kw_only=True)
class Shrink:
    checkpoint: Path = argument("checkpoint of a Transformer or BART model, of any version of fairseq")
    output: Path = argument("file to write")
    encoder_layers_to_keep: str | None = option(
        "numbers from 0, separated by commas, such as 0,2,4 (default: all of the encoder's)", None, metavar="LAYERS"
    )
    decoder_layers_to_keep: str | None = option("the same of the decoder's, such as 0,11", None, metavar="LAYERS")


def shrink(argv: Words = None) -> None:
    """Write a checkpoint with some layers of another one, to decode with or to train on (--finetune-from-model)."""
    given = read(Shrink, "shrink", argv, str(shrink.__doc__))
    keep = {"encoder": given.encoder_layers_to_keep, "decoder": given.decoder_layers_to_keep}
    if not any(value is not None for value in keep.values()):
        raise AggdecError("give --encoder-layers-to-keep or --decoder-layers-to-keep, or both")
    from fairseq_aggdec.train.shrinking import shrink_file

    print(shrink_file(given.checkpoint, given.output, keep), file=sys.stderr)


def super_resolve(argv: Words = None) -> None:
    """Decode and time images."""
    load_part("super_resolution.command").main(argv)


def user_dir(argv: Words = None) -> None:
    """Print the absolute path that --user-dir takes in any folder: that under which Python imports the package."""
    example = 'Example: fairseq-generate data-bin --user-dir "$(aggdec user-dir)" --task aggressive_translation ...'
    argparse.ArgumentParser(prog="aggdec user-dir", description=user_dir.__doc__, epilog=example).parse_args(argv)
    print(Path(fairseq_aggdec.__path__[0]).absolute())
