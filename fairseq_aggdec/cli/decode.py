"""`aggdec-decode DATA-BIN --path CKPT --input FILE... --output FOLDER`: large text files, by many processes."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import file_sha256, written_whole
from fairseq_aggdec.search_options import add_search_options, option

if TYPE_CHECKING:
    from fairseq_aggdec.bulk.shards import DecodedShard, Shard

logger = logging.getLogger(__name__)

_MAX_TOKENS = 4000
_SHARD_LINES = 2000
_NAMED = 5
"""so many skipped lines are named"""
_STDIN = "stdin"
"""what the standard input is called"""
_OF_FAIRSEQ_INTERACTIVE = "as_written"
"""a tokenizer that has to be told which line it restores, as fairseq-interactive alone does"""
_NOT_OF_THE_OUTPUT = ("data", "path", "input", "output", "engine", "workers")
"""options that outputs do not depend on, or that are recorded by what they name"""
_EPILOG = """\
The outputs of FILE are those of OUT/FILE.*.txt, in this order: cat OUT/FILE.*.txt. A line gives a line; an empty one
stays empty, as does one that is too long or not UTF-8 (OUT/skipped.tsv names these). A command that was stopped or
killed is started again as it was and goes on with what is not finished. --bpe and --tokenizer have further options,
those of fairseq-interactive (--bpe-codes, --sentencepiece-model, --moses-no-escape, ...)."""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logger.setLevel(logging.INFO)
    import fairseq_aggdec

    fairseq_aggdec.register()
    args, task_options, given = _parsed(argv)
    _run(args, task_options, given)


def _parsed(argv: Sequence[str] | None) -> tuple[argparse.Namespace, dict[str, Any], dict[str, Any]]:
    """All options, those of the plugin's task, and those that differ from their defaults."""
    from fairseq.data.encoders import BPE_REGISTRY, TOKENIZER_REGISTRY
    from fairseq.dataclass.utils import gen_parser_from_dataclass
    from fairseq.registry import REGISTRIES

    from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig
    from fairseq_aggdec.tasks.arithmetic_options import ArithmeticOptions
    from fairseq_aggdec.tasks.copying_options import CopyingOptions
    from fairseq_aggdec.tasks.drafting_options import DraftingOptions

    parser = argparse.ArgumentParser(
        prog="aggdec-decode",
        usage="aggdec-decode DATA-BIN --path CKPT --input FILE... --output OUT [options]",
        description="Decode text files of one sentence a line, in any mode of the plugin.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("data", metavar="DATA-BIN", help="folder with the dictionaries, made by fairseq-preprocess")
    parser.add_argument("--path", required=True, help="checkpoint, or several joined by ':'")
    parser.add_argument(
        "--input", nargs="+", default=["-"], metavar="FILE", help="text; '-', the default: the standard input"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help="folder to write")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    text = parser.add_argument_group("text")
    text.add_argument(
        "--tokenizer",
        choices=sorted({*TOKENIZER_REGISTRY} - {_OF_FAIRSEQ_INTERACTIVE}),
        help="taken off the output again",
    )
    text.add_argument("--bpe", choices=sorted(BPE_REGISTRY), help="subwords, joined again in the output")

    work = parser.add_argument_group("work")
    work.add_argument("--engine", choices=("local", "ray"), default="local", help="default: local, processes here")
    work.add_argument(
        "--workers", type=int, default=1, help="processes, or actors of Ray; each has the models (default: 1)"
    )
    work.add_argument("--threads", type=int, default=1, help="of a worker; they can decide near-ties (default: 1)")
    work.add_argument("--shard-lines", type=int, default=_SHARD_LINES, help="lines a shard (default: %(default)s)")
    work.add_argument(
        "--max-tokens", type=int, default=_MAX_TOKENS, help="source tokens a batch, with padding (default: %(default)s)"
    )
    work.add_argument("--batch-size", type=int, help="at most so many sentences a batch (default: no limit)")
    work.add_argument("--cpu", action="store_true", help="use no GPU")
    precision = work.add_mutually_exclusive_group()
    precision.add_argument("--fp16", action="store_const", const="fp16", dest="precision", help="half precision")
    precision.add_argument("--bf16", action="store_const", const="bf16", dest="precision", help="bfloat16")

    search = parser.add_argument_group("search (as in fairseq-generate)")
    search.add_argument("--beam", type=int, help="of --decoding beam (default: 5)")
    add_search_options(search)

    modes = parser.add_argument_group("modes (as in fairseq-generate with this plugin)")
    decoding: Any = AggressiveTranslationConfig.__dataclass_fields__["decoding"]
    modes.add_argument(
        "--decoding",
        choices=[choice.value for choice in decoding.type],
        default="aggressive",
        help=f"{decoding.metadata['help']} (default: aggressive)",
    )
    modes.add_argument(
        "--block-ngrams", action="store_true", help="make --no-repeat-ngram-size work where fairseq's search ignores it"
    )
    for options in (CopyingOptions(), DraftingOptions(), ArithmeticOptions()):
        gen_parser_from_dataclass(modes, options)
    of_task = {action.dest for action in modes._group_actions}

    chosen, _ = parser.parse_known_args(argv)
    for name in ("tokenizer", "bpe"):
        if choice := getattr(chosen, name):
            encoder = REGISTRIES[name]["registry"][choice]
            dataclass = REGISTRIES[name]["dataclass_registry"].get(choice)
            if dataclass is not None:
                gen_parser_from_dataclass(text, dataclass())
            elif hasattr(encoder, "add_args"):
                encoder.add_args(text)
    args = parser.parse_args(argv)
    _check(parser, args)
    values = vars(args)
    given = {name: value for name, value in values.items() if value != parser.get_default(name)}
    return args, {name: values[name] for name in of_task}, given


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    for name in ("workers", "threads", "shard_lines", "max_tokens", "batch_size", "beam", "max_len_b"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"{option(name)} {value}: must be at least 1")
    for name, value in vars(args).items():
        if value == "???":  # so fairseq marks what must be given
            parser.error(f"{option(name)} is needed for --bpe {args.bpe}")
    if args.decoding == "beam":
        args.beam = args.beam or 5
    elif args.beam is not None:
        parser.error(f"--beam goes with --decoding beam: --decoding {args.decoding} has a beam of one")
    names = [_STDIN if name == "-" else Path(name).name for name in args.input]
    for name in names:
        if names.count(name) > 1:
            parser.error(
                f"--input: two files are called {name}, and their outputs would be, too; give one a folder apart"
            )
        longer = next((other for other in names if other.startswith(f"{name}.")), None)
        if longer is not None:
            parser.error(f"--input: {name}.*.txt would be outputs of {longer}, too; give one of them another name")


def _run(args: argparse.Namespace, task_options: dict[str, Any], given: dict[str, Any]) -> None:
    from tqdm import tqdm

    from fairseq_aggdec.bulk.output_folder import OutputFolder
    from fairseq_aggdec.bulk.shards import cut
    from fairseq_aggdec.distillation.pipeline import shard_of_environment

    output = OutputFolder(args.output, _settings(args, given))
    rank, ranks = shard_of_environment() or (0, 1)
    if ranks > 1 and "-" in args.input:
        raise AggdecError("--input -: several commands (RANK, WORLD_SIZE) cannot share a standard input: give a file")
    paths = [_spooled(args.output) if name == "-" else Path(name) for name in args.input]
    shards = [shard for path in paths for shard in cut(path, args.shard_lines)]
    mine = shards[rank::ranks]
    left = [shard for shard in mine if not output.is_finished(shard)]
    lines, lines_left = (sum(shard.lines for shard in some) for some in (mine, left))
    logger.info(f"{lines:,} lines in {len(mine):,} shards, {len(left):,} of them to decode")
    with (
        tqdm(
            total=lines,
            initial=lines - lines_left,
            unit=" lines",
            smoothing=0.05,
            mininterval=0.5 if sys.stderr.isatty() else 30,
        ) as bar,
        closing(_decoded(left, args, task_options)) as decoded_shards,
    ):  # ends the workers, whatever happens
        for decoded in decoded_shards:
            output.write(decoded)
            bar.update(decoded.shard.lines)
    if all(map(output.is_finished, shards)):
        skipped = output.report(shards)
        if skipped:
            named = "; ".join(f"{path}, line {number}: {why}" for path, number, why in skipped[:_NAMED])
            logger.warning(
                f"{len(skipped):,} lines were skipped, and their outputs are empty ({output.skipped_file}): "
                f"{named}{'; ...' if len(skipped) > _NAMED else ''}"
            )
        for path in paths:
            logger.info(f"{path} is decoded: cat {args.output}/{path.name}.*.txt")


def _decoded(
    shards: Sequence[Shard], args: argparse.Namespace, task_options: dict[str, Any]
) -> Generator[DecodedShard]:
    from fairseq_aggdec.bulk import engines
    from fairseq_aggdec.bulk.worker import Worker

    worker = Worker(args, task_options)
    if args.engine == "ray" and shards:
        return engines.run_ray(shards, worker, args.workers, args.threads, args.cpu)
    if min(args.workers, len(shards)) <= 1:
        return engines.run_here(shards, worker)
    return engines.run_local(shards, worker, min(args.workers, len(shards)))


def _settings(args: argparse.Namespace, given: dict[str, Any]) -> dict[str, Any]:
    """What outputs depend on; files by their fingerprints.

    Raises:
        AggdecError: the data folder or a checkpoint is missing.
    """
    from fairseq_aggdec.distillation.data_bin import DataBin
    from fairseq_aggdec.translator import fingerprints

    data = DataBin.find(Path(args.data), args.source_lang, args.target_lang)
    settings = {
        "checkpoints": fingerprints(args.path),
        "source dictionary": file_sha256(data.folder / f"dict.{data.source_lang}.txt"),
        "target dictionary": file_sha256(data.folder / f"dict.{data.target_lang}.txt"),
        "--shard-lines": args.shard_lines,
    }
    for name, value in given.items():
        if name not in _NOT_OF_THE_OUTPUT:
            is_file = isinstance(value, str) and Path(value).is_file()
            settings[option(name)] = file_sha256(Path(value)) if is_file else value
    return settings


def _spooled(folder: Path) -> Path:
    """The standard input as a file, which workers can read in parts."""
    path = folder / _STDIN
    with written_whole(path) as partial, partial.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


if __name__ == "__main__":
    main()
