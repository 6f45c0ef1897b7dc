"""`aggdec score`: scores of a model's outputs, or a table of all outputs of an experiment."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_aggdec.cli.options import add_data_sets_option, check_least
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.files import check_result_file, written_whole
from fairseq_aggdec.tasks.search_options import finite

if TYPE_CHECKING:
    from fairseq_aggdec.lab.evaluation.score_table import ScoreTable

METRICS = (
    "sacrebleu, bleu, compound-bleu, ter, rouge, sari, sentence-sari, gleu, m2, m2-references, repetition, edit-ratio, "
    "unchanged, exact"
)
"""the names in `lab.evaluation.metrics`, which takes long to import"""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Prints the scores; see --help.

    Raises:
        AggdecError: a file is missing or does not fit the others.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    from fairseq_aggdec.data.experiment import Experiment
    from fairseq_aggdec.lab.evaluation.experiment_scores import experiment_tables
    from fairseq_aggdec.lab.evaluation.gleu import corpus_gleu
    from fairseq_aggdec.lab.evaluation.metrics import mean_edit_ratio
    from fairseq_aggdec.lab.evaluation.reference_set import read_parallel, read_tokens
    from fairseq_aggdec.lab.evaluation.score_table import files_table

    if getattr(args, "json", None):
        check_result_file(args.json, "[")
    if args.command == "experiment":
        config = Experiment.read(args.config)
        _print(experiment_tables(config, args.work, args.data, written=args.write), args.json)
    elif args.command == "files":
        check_least(parser, args, 0, "max_unchanged_words")
        if args.beta <= 0:
            parser.error(f"--beta {args.beta}: must be above 0")
        _print([files_table(args)], args.json)
    elif args.command == "gleu":
        texts, references = read_parallel(args.source, args.output), list(map(read_tokens, args.reference))
        print(f"GLEU {100 * corpus_gleu(*texts, references, args.draws):.2f}")
    else:
        print(f"edit ratio {100 * mean_edit_ratio(*read_parallel(args.source, args.output)):.2f} %")


def _print(tables: Sequence[ScoreTable], json_file: Path | None) -> None:
    if json_file is not None:
        with written_whole(json_file) as partial:
            partial.write_text(json.dumps([table.record() for table in tables], indent=1) + "\n", encoding="utf-8")
    print("\n\n".join(table.text() for table in tables))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aggdec score", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    json_option = argparse.ArgumentParser(add_help=False)
    json_option.add_argument("--json", type=Path, metavar="OUT", help="also write the scores to this file")

    files = commands.add_parser(
        "files", parents=[json_option], help="scores of outputs by the given references, sources and gold edits"
    )
    files.add_argument(
        "outputs",
        type=Path,
        nargs="+",
        help="files of tokens, one sentence in a line, or outputs of fairseq-generate; one row each",
    )
    files.add_argument("--sources", type=Path, help="tokenised sources, for tasks that edit them")
    files.add_argument("--references", type=Path, nargs="+", default=[], help="tokenised references")
    files.add_argument(
        "--text-references", type=Path, nargs="+", default=[], help="references as running text, for sacrebleu"
    )
    files.add_argument(
        "--language",
        help="language of the outputs: their Moses tokens become running text for sacrebleu (default: they are that)",
    )
    files.add_argument("--m2", type=Path, help="M2 file of gold edits, gzipped or not, in the tokens of the outputs")
    files.add_argument(
        "--metrics",
        default="",
        help=f"comma separated, from {METRICS} (default: all that the given files allow, except ter, "
        "sentence-sari, m2-references, unchanged and exact)",
    )
    files.add_argument("--characters", action="store_true", help="take each character for a token, as for Chinese")
    files.add_argument(
        "--max-unchanged-words",
        "--max_unchanged_words",
        type=int,
        default=2,
        help="most unchanged words within an M2 edit",
    )
    files.add_argument("--beta", type=finite, default=0.5, help="beta of M2's F score")
    files.add_argument("--stem", action="store_true", help="compare stems in ROUGE")
    files.add_argument(
        "--official",
        action="append",
        default=[],
        metavar="PATH",
        help="also run this scorer: m2scorer, JFLEG's gleu.py, easse or multi-bleu.perl; can be repeated",
    )
    gleu = commands.add_parser("gleu", help="GLEU of tokenised files (Napoles et al. 2015, 2016)")
    gleu.add_argument("--source", type=Path, required=True)
    gleu.add_argument("--output", type=Path, required=True, help="the corrected text")
    gleu.add_argument("--reference", type=Path, required=True, nargs="+")
    for command in (files, gleu):
        command.add_argument("--draws", type=int, default=500, help="number of GLEU's random choices of references")
    ratio = commands.add_parser("edit-ratio", help="mean token edit distance, normalised by source length")
    ratio.add_argument("--source", type=Path, required=True)
    ratio.add_argument("--output", type=Path, required=True)
    experiment = commands.add_parser(
        "experiment", parents=[json_option], help="table of all decoded test sets of an experiment"
    )
    experiment.add_argument("config", type=Path, help="the experiment's prepare.py")
    experiment.add_argument("--work", type=Path, required=True, help="the experiment's work folder")
    experiment.add_argument(
        "--write",
        type=Path,
        metavar="FOLDER",
        help="also write the outputs, FOLDER/SET/DECODING.txt, one sentence a line",
    )
    add_data_sets_option(experiment, "folder of the data sets, where M2 files are")
    return parser


if __name__ == "__main__":
    main()
