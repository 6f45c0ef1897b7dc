"""Whole test sets through fairseq-generate: stock `--beam 5 --nbest 5`, and `--decoding aggressive-beam` beside it.

    bash scripts/beam_lists.sh [--sets NAME...] [--work FOLDER] [--limit N]

What a search has written is kept: a stopped call goes on with the search that it was in. At another commit this
plugin's searches are done anew, with another model all. Each set ends as a record, WORK/NAME.json; with --limit N as
WORK/NAME-N.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shlex
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fairseq_aggdec.cli.options import add_data_sets_option
from fairseq_aggdec.data.subwords import as_written, subword_nmt
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import file_sha256, folder_written_whole, written_whole
from fairseq_aggdec.lab.benchmarking import machine
from fairseq_aggdec.lab.benchmarking.random_models import write_random_model
from fairseq_aggdec.lab.benchmarking.tables import Table
from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.lab.lossless.list_counts import compare, read_lists
from fairseq_aggdec.models.sizes import SIZES

ROOT = Path(__file__).resolve().parents[3]
_DEMO = Path("fairseq_aggdec/demo")
_SEARCH = "--beam 5 --nbest 5"
_WORDS = 300
"""of a random model: so few that its outputs repeat themselves, which banning n-grams then changes"""
_BLOCKER = """\
from fairseq.ngram_repeat_block import NGramRepeatBlock as Block
from fairseq_cli.generate import cli_main
broken = Block.forward
Block.forward = lambda self, tokens, scores, rows, beam, step: broken(
    self, tokens[:, : step + 1], scores, rows, beam, step)
cli_main()
"""
"""stock fairseq-generate with an n-gram blocker that bans on a CPU, too: it is shown an output without the padding"""


@dataclass(frozen=True)
class Sentences:
    """Sentences, the model that decodes them, and options of the search."""

    title: str
    make: Callable[[Path, argparse.Namespace], tuple[Path, Path]]
    """writes a folder's data and model, where they are not there; returns the data-bin and the checkpoint"""
    options: str = ""
    """of both searches"""
    ours: str = ""
    """further options of this plugin's search"""
    blocks: bool = False
    """whether stock fairseq's n-gram blocker has to be repaired"""
    batches: Sequence[int] = (32, 1)
    """sizes for this plugin's searches; stock fairseq's has the first"""


def _correction(lines: Callable[[Path], Iterable[str]]) -> Callable[[Path, argparse.Namespace], tuple[Path, Path]]:
    """Sentences for the shipped corrector, with its subwords."""

    def make(folder: Path, args: argparse.Namespace) -> tuple[Path, Path]:
        model = _DEMO / "gec"
        tokenizer, subwords = as_written(), subword_nmt(model / "bpecodes")
        texts = (subwords.encode(tokenizer.encode(line.strip())) for line in lines(args.data))
        data = _binarised(folder, texts, args.limit, model / "dict.en.txt", model / "bpecodes")
        return data, model / "model.pt"

    return make


def _tatoeba(folder: Path, args: argparse.Namespace) -> tuple[Path, Path]:
    data = args.tatoeba
    if not data.is_dir():
        raise AggdecError(
            f"{data}: no such folder; bash scripts/prepare.sh tatoeba_en_de makes it, or --tatoeba names it"
        )
    return data, _DEMO / "mt/model.pt"


def _trained(experiment: str, stage: str, model: str) -> Callable[[Path, argparse.Namespace], tuple[Path, Path]]:
    """The test set of an experiment and a model that one of its stages trains."""

    def make(folder: Path, args: argparse.Namespace) -> tuple[Path, Path]:
        work = Path("work") / experiment
        data, checkpoint = work / "data-bin", work / model
        for path in (data, checkpoint):
            if not path.exists():
                raise AggdecError(
                    f"{path}: not there; bash scripts/reproduce.sh {experiment} prepare {stage} "
                    "makes it, or --sets leaves this set out"
                )
        return data, checkpoint

    return make


def _summarization(size: str) -> Callable[[Path, argparse.Namespace], tuple[Path, Path]]:
    """SciTLDR's abstracts for a random model, whose dictionary has a symbol for each word."""

    def make(folder: Path, args: argparse.Namespace) -> tuple[Path, Path]:
        made = write_random_model(folder / "model", SIZES[size], vocabulary=_WORDS + 4)
        with gzip.open(args.data / "scitldr/test.jsonl.gz", "rt", encoding="utf-8") as lines:
            words = (" ".join(json.loads(line)["source"]).split() for line in lines)
            texts = (" ".join(f"w{zlib.crc32(word.encode()) % _WORDS}" for word in text) for text in words)
            return _binarised(folder, texts, args.limit, made.folder / "dict.src.txt"), made.checkpoint

    return make


def _binarised(folder: Path, texts: Iterable[str], limit: int | None, dictionary: Path, *codes: Path) -> Path:
    """A data-bin of these sources, each also its own target, which nothing reads.

    It is kept for this dictionary and these codes of subwords, whose fingerprints are in its name.
    """
    data = folder / "-".join(["bin", *(file_sha256(file)[:12] for file in (dictionary, *codes))])
    if not data.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(line + "\n" for line in islice(texts, limit))
        for side in ("src", "tgt"):
            (folder / f"test.{side}").write_text(text, encoding="utf-8")
        options = ["-s", "src", "-t", "tgt", "--joined-dictionary", "--srcdict", dictionary, "--workers", 1]
        run = [sys.executable, "-m", "fairseq_cli.preprocess", *options, "--testpref", folder / "test"]
        with folder_written_whole(data) as partial:
            subprocess.run([*map(str, run), "--destdir", str(partial)], check=True, stdout=subprocess.DEVNULL)
    return data


def _lines(name: str) -> Callable[[Path], Iterable[str]]:
    return lambda data: (data / name).read_text(encoding="utf-8").splitlines()


def _first_column(name: str) -> Callable[[Path], Iterable[str]]:
    def lines(data: Path) -> Iterable[str]:
        with gzip.open(data / name, "rt", encoding="utf-8") as rows:
            yield from (row.partition("\t")[0] for row in rows)

    return lines


_SUMMARY = "--lenpen 2.0 --min-len 8 --max-len-b 40 --truncate-source --max-source-positions 1024"
SETS = {
    "jfleg_test": Sentences("JFLEG test, the shipped corrector", _correction(_lines("jfleg/test.src"))),
    "jfleg_dev": Sentences("JFLEG dev, the shipped corrector", _correction(_lines("jfleg/dev.src"))),
    "tatoeba_en_de": Sentences(
        "Tatoeba English-German test, the shipped pair",
        _tatoeba,
        ours=f"--drafter-path {_DEMO}/mt/drafter.pt",
    ),
    "scitldr": Sentences(
        "SciTLDR test, random weights in BART's shape (bart-small)",
        _summarization("bart-small"),
        f"{_SUMMARY} --no-repeat-ngram-size 3",
        batches=(8, 1),
    ),
    "scitldr_blocked": Sentences(
        "SciTLDR test, random weights in BART's shape (bart-small), repeated n-grams banned",
        _summarization("bart-small"),
        f"{_SUMMARY} --no-repeat-ngram-size 3",
        ours="--block-ngrams",
        blocks=True,
        batches=(8, 1),
    ),
    "wikisplit": Sentences(
        "WikiSplit test, the shipped corrector", _correction(_first_column("wikisplit/test.tsv.gz"))
    ),
    "tatoeba_de_en": Sentences(
        "Tatoeba German-English test, the teacher of configs/tatoeba_de_en",
        _trained("tatoeba_de_en", "teacher", "teacher/model.pt"),
    ),
}


def run_set(name: str, args: argparse.Namespace, commit: str) -> dict[str, Any]:
    """Run the searches of a set that have not been run, compare their lists, and write the record.

    Returns:
        the record: what was run, and the counts of each search of this plugin.
    """
    test, folder = SETS[name], args.work / name
    if args.limit:
        folder = folder.with_name(f"{name}-{args.limit}")
    data, model = test.make(folder, args)
    lists = folder / file_sha256(model)[:12]  # those of another model would not compare
    common = ["fairseq-generate", str(data), "--path", str(model), "--gen-subset", "test", "--cpu"]
    common += [*_SEARCH.split(), *test.options.split(), "--user-dir", "fairseq_aggdec", "--no-progress-bar"]
    stock = [*common, "--batch-size", str(test.batches[0])]
    expected = read_lists(_generated(stock, lists / "stock", test.blocks))
    limited = len(expected) == args.limit  # some sets are always whole, others may be shorter
    record: dict[str, Any] = {
        "title": test.title + (f", the first {args.limit}" if limited else ""),
        "stock": shlex.join(stock),
        "stock_blocker_repaired": test.blocks,
        "date": machine.now(),
        "commit": commit,
        "machine": machine.machine(),
        "searches": [],
    }
    for size in test.batches:
        ours = [*common, "--batch-size", str(size), "--task", "aggressive_translation"]
        ours += ["--decoding", "aggressive-beam", *test.ours.split()]
        counts = compare(expected, read_lists(_generated(ours, lists / f"aggressive-{size}-{commit}")))
        record["searches"].append({"command": shlex.join(ours), "batch_size": size, **asdict(counts)})
    with written_whole(folder.with_name(f"{folder.name}.json")) as partial:
        partial.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return record


def _generated(command: Sequence[str], folder: Path, repaired: bool = False) -> Path:
    """The results of fairseq-generate in a folder, which has its name when they are complete."""
    path = folder / "generate-test.txt"
    if not path.is_file():
        print(f"{machine.now()} {shlex.join(command)}", file=sys.stderr, flush=True)
        program = ["-c", _BLOCKER] if repaired else ["-m", "fairseq_cli.generate"]
        with folder_written_whole(folder) as partial:
            options = [*command[1:], "--results-path", str(partial)]
            done = subprocess.run([sys.executable, *program, *options], capture_output=True, text=True)
            if done.returncode:
                raise AggdecError(f"{shlex.join(command)}: ended with {done.returncode}: {done.stderr[-2000:].strip()}")
    return path


def table(records: Sequence[dict[str, Any]]) -> Table:
    """A row for each search."""
    rows = []
    for record in records:
        for search in record["searches"]:
            counts = [f"{search[name]:,}" for name in ("lists", "hypotheses", "equal", "near_ties", "differing")]
            largest = f"{search['largest_score_difference']:.0e}"
            rows.append([record["title"], str(search["batch_size"]), *counts, largest, f"`{record['commit']}`"])
    names = ["set", "batch size", "lists", "hypotheses", "equal lists", "near-ties", "differing"]
    return [*names, "largest difference of scores", "commit"], rows


@on_command_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Command line; the exit code is 1 where a list differs."""
    parser = argparse.ArgumentParser(prog="scripts/beam_lists.sh", description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS), help="default: all")
    parser.add_argument("--work", type=Path, default=Path("work/beam_lists"), help="default: %(default)s")
    parser.add_argument("--limit", type=int, help="the first N sentences of a set (Tatoeba's are always whole)")
    parser.add_argument(
        "--tatoeba", type=Path, default=Path("work/tatoeba_en_de/data-bin"), help="default: %(default)s"
    )
    add_data_sets_option(parser, "folder of the data sets")
    args = parser.parse_args(argv)
    os.chdir(ROOT)
    commit = machine.commit() or "unknown"
    records = []
    for name in args.sets:
        records.append(run_set(name, args, commit))
        print(text_table(*table(records[-1:])), flush=True)
        for line in (line for search in records[-1]["searches"] for line in search["differences"]):
            print(line, flush=True)
    return int(any(search["differing"] for record in records for search in record["searches"]))


if __name__ == "__main__":
    sys.exit(main())
