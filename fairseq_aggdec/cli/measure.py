"""Measure: `aggdec bench`, `aggdec tune`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction, arg

from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import (
    NO_DEFAULT,
    Count,
    Counts,
    Flag,
    Maybe,
    Number,
    Verb,
)
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.generation.modes import COPY_RULES
from fairseq_aggdec.lab.bench.modes import KNOWN, parse_modes
from fairseq_aggdec.lab.bench.search_settings import check_peers, given_settings

QUALITIES = ("bleu", "compound-bleu", "rouge", "sari", "gleu", "m2-references", "exact")
"""metrics of tokens in which more is better; where one has several columns, the last counts"""


@dataclass(kw_only=True)
class Bench(options.HalfPrecision, options.SubjectOrRandom):
    """Time decoding modes on the same sentences, in turns."""

    # file with the subset's targets as running text, for BLEU
    reference: Maybe[Path] = None
    modes: Annotated[
        str,
        arg(
            help=f"comma separated, from {KNOWN}; beamN is fairseq's own search, +whole verifies whole drafts"
        ),
    ] = "beam5,beam1,greedy,iad"
    # --copies of iad
    copies: Annotated[str, options.choice(COPY_RULES)] = COPY_RULES[0]
    #: ctranslate2: the same checkpoint, in fp32 and int8, greedy and beam of 5; or some of these, such as
    #: ctranslate2:greedy,ctranslate2:greedy@int8; needs the package ctranslate2
    peers: Annotated[str, NO_DEFAULT] = ""
    #: a model of fairseq's task translation_lev (NAT, iNAT, CMLM, Levenshtein Transformer), decoded in so many passes
    #: at most (default: 10), with so many candidate lengths (default: 1)
    nat_peer: Annotated[
        UseAppendAction[list[str]], arg(metavar="LABEL=PATH[:ITERATIONS[:LENGTH-BEAM]]")
    ] = field(default_factory=list)
    #: comma separated, one after another
    batch_sizes: Annotated[Counts, arg(aliases=["--batch-size"])] = field(
        default_factory=lambda: [1]
    )
    repeats: Count = 3  # how often each mode is timed
    profile: bool = True  # measure the time by module, in a further round
    memory: bool = True  # measure peak memory
    #: make --no-repeat-ngram-size work in this plugin's modes on a CPU, where fairseq's own search (beamN) ignores it
    #: and then has other outputs
    block_ngrams: Flag = False
    truncate_source: Flag = False  # cut sources to --max-source-positions
    # most tokens of a source, EOS included (default: 1024)
    max_source_positions: Maybe[Count] = None

    def check(self) -> None:
        if self.block_ngrams and not self.no_repeat_ngram_size:
            raise AggdecError("--block-ngrams goes with --no-repeat-ngram-size")
        of_translation = [
            name
            for name in ("peers", "nat_peer", "truncate_source")
            if getattr(self, name)
        ]
        if self.task != "translation" and of_translation:
            name = option_name(of_translation[0])
            raise AggdecError(
                f"{name} goes with the task translation, not with --task {self.task}"
            )
        self.check_model("reference", "nat_peer", *given_settings(self))

    def run(self) -> None:
        """Time the modes, print the table, and refuse outputs of a lossless mode that are not greedy decoding's."""
        modes = parse_modes(self.modes, self.peers, self.nat_peer, self.precision)
        check_peers(given_settings(self), modes)
        self.start()
        from fairseq_aggdec.lab.bench import measure, tables
        from fairseq_aggdec.lab.verify.references import refuse_differing

        record = measure.measure(self, modes, self.command)
        try:
            if self.json:
                record.save(self.json)
        finally:  # also where the disk is full
            print(tables.markdown(record))
        refuse_differing(
            [
                f"{run.mode} at batch size {run.batch_size}"
                for run in record.runs
                if run.counts.differing
            ]
        )


@dataclass(kw_only=True)
class Tune(options.HalfPrecision, options.Subject, Verb):
    """Measure on a development set which k, β and τ GAD++ should have (Ge et al. 2022, Tables 6 and 7)."""

    data: Positional[str]  # folder made by fairseq-preprocess
    path: str  # checkpoint, or several joined by ':'
    drafter_path: str  # checkpoint of the block drafter
    output: Path  # JSON file of the measurements; a stopped run goes on with it
    gen_subset: str = "valid"  # split to decode
    block_sizes: Counts = field(default_factory=lambda: [10, 15, 20, 25])  # k
    betas: Counts = field(default_factory=lambda: [3, 5])  # β
    #: τ
    tolerances: Annotated[list[float], options.numbers(float, 0)] = field(
        default_factory=lambda: [1.0, 2.0, 3.0, 4.0, 5.0]
    )
    metric: Annotated[str, options.choice(QUALITIES)] = "bleu"  # quality
    # how far above greedy decoding the high-quality setting must be
    margin: Number = 0.0
    # how far below greedy decoding the high-efficiency setting may be
    loss: Number = 0.5
    beam: Count = 5  # beam of the baseline
    batch_size: Count = 1  # sentences in a batch
    repeats: Count = 3  # rounds, whose median time counts

    def run(self) -> None:
        options.start(self.threads, self.path, self.drafter_path)
        from fairseq_aggdec.lab.tune import tune

        tune(self)
