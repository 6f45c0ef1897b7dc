"""Try and trust: `aggdec demo`, `aggdec verify`, `aggdec user-dir`."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

import fairseq_aggdec
from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import (
    NO_DEFAULT,
    Count,
    Counts,
    Flag,
    Many,
    Maybe,
    Natural,
    Verb,
)
from fairseq_aggdec.demo.shipped import SHIPPED
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text, read_text
from fairseq_aggdec.lab.bench.modes import PRECISIONS


@dataclass(kw_only=True)
class Demo(Verb):
    """Show shipped models decoding sentences by fairseq's search and by this plugin, side by side.

    `gec` corrects English by copying the input as the draft; `mt` translates English into German
    with drafts of a second model.
    """

    # English sentences (default: a built-in set)
    sentences: Positional[Many[str]] = field(default_factory=list)
    task: Literal["gec", "mt"] = "gec"  # the model
    # file with one sentence in a line; '-' for the standard input
    input: Maybe[str] = None
    show: Natural = 5  # number of sentences whose blocks are shown
    rounds: Count = 3  # how often each mode is timed
    threads: Maybe[Count] = None  # number of PyTorch's threads

    def run(self) -> None:
        if self.sentences and self.input:
            raise AggdecError("give sentences or --input, not both")
        demo = SHIPPED[self.task]
        lines = [
            decode_text(os.fsencode(sentence), "the sentence")
            for sentence in self.sentences
        ]
        if not lines:  # a line feed alone ends a sentence, as in fairseq
            lines = read_text(self.input or demo.folder / "sentences.txt").split("\n")
        sentences = [line.strip() for line in lines if line.strip()]
        if not sentences:
            raise AggdecError("no sentence given: nothing to decode")
        options.start(self.threads)
        from fairseq_aggdec.lab.demonstration import show

        show(demo, sentences, self.show, self.rounds, options.in_colour())


def _precision(word: str) -> str:
    if word not in PRECISIONS:
        raise ValueError
    return word


@dataclass(kw_only=True)
class Verify(options.SubjectOrRandom):
    """Compare every mode with fairseq's own search on the first sentences of a split.

    The exit code is 1 where a lossless mode differs by more than rounding explains.
    """

    #: 100 sentences in place of 20 (of a random model 8), and every precision of the machine, alone and in small and
    #: large batches
    thorough: Flag = False
    #: comma separated, from greedy, iad, iad++, gad, gad++, speculative, nar, blockwise, aggressive-beam:N, whose lists
    #: are compared with fairseq's beam of N; +whole after one verifies whole drafts, also where they save no time
    #: (default: greedy, iad and aggressive-beam:5, with a drafter gad and gad++ or speculative, with proposal heads
    #: blockwise; on a CPU iad, gad and speculative +whole, too)
    modes: Maybe[str] = None
    precisions: Annotated[
        list[str] | None,
        options.several(_precision, f"ones of {', '.join(PRECISIONS)}"),
        NO_DEFAULT,
        arg(
            help=f"comma separated, from {', '.join(PRECISIONS)} (under --bit-exact, on a GPU in fp16); one that this "
            "machine lacks is then an error (default: fp32, as fairseq-generate without --fp16; --thorough: all it has)"
        ),
    ] = None
    #: where no --precisions are given, also decode under --bit-exact, if the device supports it: alone, in batches and
    #: shuffled, compared to the last bit (default: only with --thorough)
    bit_exact: Maybe[bool] = None
    # comma separated (default: 1,8; --thorough: 1,8,32)
    batch_sizes: Maybe[Counts] = None
    # a draft for each sentence of the split, for iad and iad++
    draft_file: Maybe[Path] = None
    #: compare greedy search with that of transformers, which has to be installed: DATA is a folder in Hugging Face's
    #: format, and its sentences those of --input
    against_transformers: Flag = False
    # with --against-transformers: file with one sentence in a line; '-': the standard input
    input: Maybe[str] = None

    def check(self) -> None:
        if self.against_transformers and not (self.data and self.input):
            raise AggdecError(
                "--against-transformers: give DATA, a folder in Hugging Face's format, and --input"
            )
        if self.against_transformers:
            return
        if self.input:
            raise AggdecError("--input: only with --against-transformers")
        self.check_model("draft_file", *self.given(options.Search))
        if self.bit_exact is False and "exact" in (self.precisions or ()):
            raise AggdecError(
                "--precisions exact decodes under --bit-exact: leave out --no-bit-exact, or exact"
            )
        is_exact = self.thorough if self.bit_exact is None else self.bit_exact
        if self.max_len_a and (
            "exact" in self.precisions if self.precisions else is_exact
        ):
            raise AggdecError(
                "--max-len-a lets the length of an output depend on its batch, which --bit-exact compares: add "
                "--no-bit-exact, or leave it out"
            )

    def run(self) -> int:
        self.start()
        if self.data and self.input:
            from fairseq_aggdec.lab.verify.against_transformers import differences

            texts = [
                line for line in read_text(self.input).split("\n") if line.strip()
            ][: self.limit]
            found = differences(
                Path(self.data), (self.source_lang, self.target_lang), texts, 1
            )
            print(
                *found,
                f"{len(texts)} sentences, {len(found)} otherwise than in transformers",
                sep="\n",
            )
            return 1 if found else 0
        from fairseq_aggdec.lab.verify.verify_command import run

        verification = run(self, self.command)
        if self.json:
            verification.save(self.json)
        print(verification.text())
        return 1 if verification.failed else 0


@dataclass(kw_only=True)
class UserDir(Verb):
    """Print the absolute path that --user-dir takes in any folder: that under which Python imports
    the package.

    Example: fairseq-generate data-bin --user-dir "$(aggdec user-dir)" --decoding aggressive ...
    """

    def run(self) -> None:
        print(Path(fairseq_aggdec.__path__[0]).absolute())
