"""`aggdec score`: scores of a model's outputs, or a table of all outputs of an experiment."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_aggdec.checkout import load_part
from fairseq_aggdec.cli.options import add_data_sets_option, check_least
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import check_result_file, written_whole
from fairseq_aggdec.generation.options import finite

if TYPE_CHECKING:
    from fairseq_aggdec.lab.score.score_table import ScoreTable

METRICS = (
    "sacrebleu, bleu, compound-bleu, ter, rouge, sari, sentence-sari, gleu, m2, m2-references, repetition, edit-ratio, "
    "unchanged, exact"
)
"""the names in `lab.score.metrics`, which takes long to import"""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Print the scores; see --help.

    Raises:
        AggdecError: a file is missing or does not fit the others.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if args.json:
        check_result_file(args.json, "[")
    if args.command == "experiment":
        config, _ = load_part("experiments.experiment").read_experiment(args.config)
        scores = load_part("experiments.scores").ExperimentScores(config, args.work, args.data)
        tables = scores.tables(args.write)
    else:
        check_least(parser, args, 0, "max_unchanged_words")
        if args.beta <= 0:
            parser.error(f"--beta {args.beta}: must be above 0")
        tables = [files_table(args)]
    if args.json:
        with written_whole(args.json) as partial:
            partial.write_text(json.dumps([table.record() for table in tables], indent=1) + "\n", encoding="utf-8")
    print("\n\n".join(table.text() for table in tables))


def files_table(args: argparse.Namespace) -> ScoreTable:
    """The table of `aggdec score files`.

    Raises:
        AggdecError: files are empty or do not belong together, or a metric cannot be used.
    """
    from fairseq_aggdec.lab.score.metrics import Settings, choose_metrics
    from fairseq_aggdec.lab.score.reference_set import characters, read_outputs, read_reference_set
    from fairseq_aggdec.lab.score.score_table import ScoreTable

    if args.characters and args.text_references:
        raise AggdecError("--characters: splits tokens, but --text-references are running text; leave one out")
    settings = Settings(args.max_unchanged_words, args.beta, args.draws, args.stem)
    test = read_reference_set(args.sources, args.references, args.text_references, args.language, args.m2)
    outputs = {path: read_outputs(path, test.size) for path in args.outputs}
    if args.characters:
        test = test.in_characters()
        for path, lines in outputs.items():
            outputs[path] = dict(zip(lines, characters(list(lines.values())), strict=True))
    names = [name.strip() for name in args.metrics.split(",") if name.strip()]
    table = ScoreTable("outputs", test, choose_metrics(names, test, settings), settings)
    for path, lines in outputs.items():
        table.add(str(path), lines)
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aggdec score", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    files = commands.add_parser("files", help="scores of outputs by the given references, sources and gold edits")
    add = files.add_argument
    add("outputs", type=Path, nargs="+", help="files of tokens, one sentence in a line, or outputs of fairseq-generate")
    add("--sources", type=Path, help="tokenised sources, for tasks that edit them")
    add("--references", type=Path, nargs="+", default=[], help="tokenised references")
    add("--text-references", type=Path, nargs="+", default=[], help="references as running text, for sacrebleu")
    language = "language of the outputs: their Moses tokens become running text for sacrebleu (default: they are that)"
    add("--language", help=language)
    add("--m2", type=Path, help="M2 file of gold edits, gzipped or not, in the tokens of the outputs")
    metrics = (
        f"comma separated, from {METRICS} (default: all that the given files allow, except ter, sentence-sari, "
        "m2-references, unchanged and exact)"
    )
    add("--metrics", default="", help=metrics)
    add("--characters", action="store_true", help="take each character for a token, as for Chinese")
    add(
        "--max-unchanged-words", "--max_unchanged_words", type=int, default=2, help="most unchanged words in an M2 edit"
    )
    add("--beta", type=finite, default=0.5, help="beta of M2's F score")
    add("--stem", action="store_true", help="compare stems in ROUGE")
    add("--draws", type=int, default=500, help="number of GLEU's random choices of references")
    experiment = commands.add_parser("experiment", help="table of all decoded test sets of an experiment")
    add = experiment.add_argument
    add("config", type=Path, help="the experiment's prepare.py")
    add("--work", type=Path, required=True, help="the experiment's work folder")
    written = "also write the outputs, FOLDER/SET/DECODING.txt, one sentence a line, for another scorer"
    add("--write", type=Path, metavar="FOLDER", help=written)
    add_data_sets_option(experiment, "folder of the data sets, where M2 files are")
    for command in (files, experiment):
        command.add_argument("--json", type=Path, metavar="OUT", help="also write the scores to this file")
    return parser


if __name__ == "__main__":
    main()
