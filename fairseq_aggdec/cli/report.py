"""Tables of results: `aggdec report`, `aggdec score`, `aggdec compare`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import NO_DEFAULT, Flag, Many, Maybe, Natural, Verb
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import check_result_file, written_whole

if TYPE_CHECKING:
    from fairseq_aggdec.lab.score.score_table import ScoreTable

METRICS = (
    "sacrebleu, bleu, compound-bleu, ter, rouge, sari, gleu, m2, m2-references, repetition, edit-ratio, unchanged, "
    "exact"
)
"""the names in `lab.score.metrics`, which takes long to import"""


@dataclass(kw_only=True)
class Report(Verb):
    """Print the tables of one or more measurements (Markdown), and draw their figures: speed-up
    against edit ratio, of single sentences and against batch size."""

    records: Positional[list[Path]]  # written by aggdec bench --json
    # draw, as PNG and SVG, into this folder
    figures: Annotated[Maybe[Path], arg(metavar="FOLDER")] = None

    def check(self) -> None:
        stems = [path.stem for path in self.records]
        if not stems:
            raise AggdecError(
                "name one or more records, written by aggdec bench --json"
            )
        twice = next((stem for stem in stems if stems.count(stem) > 1), None)
        if self.figures and twice:
            raise AggdecError(
                f"--figures: two records are called {twice}, and their figures would be: rename one"
            )

    def run(self) -> None:
        from fairseq_aggdec.lab.bench.record import load_record
        from fairseq_aggdec.lab.bench.tables import markdown

        records = {path.stem: load_record(path) for path in self.records}
        print(
            "\n\n".join(
                f"## {name}\n\n{markdown(record)}" for name, record in records.items()
            )
        )
        if self.figures:
            from fairseq_aggdec.lab.bench.figures import draw

            for name, record in records.items():
                for path in draw(record, self.figures, name):
                    print(f"\n{path}" if path.suffix == ".png" else path)


@dataclass(kw_only=True)
class ReportTrace(Verb):
    """Print how sentences were decoded, iteration by iteration, on a terminal in colour."""

    #: written by fairseq-generate or fairseq-interactive with --decoding-stats and --retain-iter-history
    files: Positional[list[Path]]
    #: numbers of the sentences (default: the first 10)
    sentences: Annotated[list[int] | None, options.numbers(int, 0), NO_DEFAULT] = None

    def run(self) -> None:
        from fairseq_aggdec.lab.trace import read_traces, text

        limit = 10 if self.sentences is None else None
        files = {
            path.stem: read_traces(path, self.sentences, limit) for path in self.files
        }
        print(text(files, options.in_colour()), end="")


@dataclass(kw_only=True)
class Score(Verb):
    """A verb that scores outputs."""

    json: Maybe[Path] = None  # also write the scores to this file

    def run(self) -> None:
        if self.json:
            check_result_file(self.json, "[")
        tables = self.tables()
        if self.json:
            with written_whole(self.json) as partial:
                records = [table.record() for table in tables]
                partial.write_text(
                    json.dumps(records, indent=1) + "\n", encoding="utf-8"
                )
        print("\n\n".join(table.text() for table in tables))

    def tables(self) -> list[ScoreTable]:
        """The tables to print."""
        raise NotImplementedError


@dataclass(kw_only=True)
class ScoreFiles(Score):
    """Print scores of outputs by the given references, sources and gold edits."""

    # files of tokens, one sentence in a line, or outputs of fairseq-generate
    outputs: Positional[list[Path]]
    sources: Maybe[Path] = None  # tokenised sources, for tasks that edit them
    references: Many[Path] = field(default_factory=list)  # tokenised references
    # references as running text, for sacrebleu
    text_references: Many[Path] = field(default_factory=list)
    #: language of the outputs: their Moses tokens become running text for sacrebleu (default: they are that)
    language: Maybe[str] = None
    # M2 file of gold edits, gzipped or not, in the tokens of the outputs
    m2: Maybe[Path] = None
    metrics: Annotated[
        Maybe[str],
        arg(
            help=f"comma separated, from {METRICS} (default: all that the given files allow, except ter, "
            "m2-references, unchanged and exact)"
        ),
    ] = None
    characters: Flag = False  # take each character for a token, as for Chinese
    stem: Flag = False  # compare stems in ROUGE

    def check(self) -> None:
        if not self.outputs:
            raise AggdecError("name one or more files of outputs")

    def tables(self) -> list[ScoreTable]:
        from fairseq_aggdec.lab.score.score_table import files_table

        return [files_table(self)]


@dataclass(kw_only=True)
class Compare(Verb):
    """Compare two outputs of fairseq-generate token by token; the exit code is 1 if more than
    near-ties differ."""

    first: Positional[Path]  # generate-SUBSET.txt of one decoding
    second: Positional[Path]  # generate-SUBSET.txt of another decoding
    show: Natural = 10  # most differing sentences to print

    def run(self) -> int:
        from fairseq_aggdec.lab.score.comparison import differing
        from fairseq_aggdec.lab.score.generate_file import read_generate_file

        first = read_generate_file(self.first)
        different = differing(first, read_generate_file(self.second))
        for one in different[: self.show]:
            print(one.text)
        near_ties = sum(one.is_near_tie for one in different)
        note = f", near-ties: {near_ties}" if near_ties else ""
        print(f"identical: {len(first) - len(different)} of {len(first)}{note}")
        return 1 if len(different) > near_ties else 0
