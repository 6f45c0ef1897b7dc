"""The table of `aggdec score files`."""

from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.metrics import Settings, choose_metrics
from fairseq_aggdec.lab.score.reference_set import characters, read_outputs, read_reference_set
from fairseq_aggdec.lab.score.score_table import ScoreTable


def files_table(args: Any) -> ScoreTable:
    """Score files of outputs.

    Args:
        args: the options of `aggdec score files`.

    Raises:
        AggdecError: files are empty or do not belong together, or a metric cannot be used.
    """
    if args.characters and args.text_references:
        raise AggdecError("--characters: splits tokens, but --text-references are running text; leave one out")
    settings = Settings(args.max_unchanged_words, args.beta, args.draws, args.stem)
    test = read_reference_set(args.sources, args.references, args.text_references, args.language, args.m2)
    outputs = {path: read_outputs(path, test.size) for path in args.outputs}
    if args.characters:
        test = test.in_characters()
        for path, lines in outputs.items():
            outputs[path] = dict(zip(lines, characters(list(lines.values())), strict=True))
    names = [name.strip() for name in (args.metrics or "").split(",") if name.strip()]
    table = ScoreTable("outputs", test, choose_metrics(names, test, settings), settings)
    for path, lines in outputs.items():
        table.add(str(path), lines)
    return table
