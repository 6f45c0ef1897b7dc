"""Writes a record as Markdown."""

from fairseq_aggdec.lab.benchmarking.machine import describe
from fairseq_aggdec.lab.benchmarking.record import Record
from fairseq_aggdec.lab.benchmarking.search_settings import as_options
from fairseq_aggdec.lab.benchmarking.tables import module_table, ratio_table, speed_table
from fairseq_aggdec.lab.grid import text_table


def markdown(record: Record) -> str:
    """A header, then for each batch size the tables of speeds, of ratios and of modules."""
    repeats = record.runs[0].rounds if record.runs else 0
    lines = [
        f"{record.title}, {repeats} rounds",
        describe(record.machine),
        f"command: {record.command}",
        *([f"search: {as_options(record.search)}"] if record.search else []),
        f"commit {record.commit or 'unknown'}, {record.date}",
    ]
    for batch_size in record.batch_sizes:
        runs = record.at(batch_size)
        lines += ["", f"Batch size {batch_size}:", "", text_table(*speed_table(runs))]
        if len(runs) > 1:
            lines += ["", "How many times faster the mode of a row is than that of a column:", ""]
            lines.append(text_table(*ratio_table(runs)))
        modules = module_table(runs)
        if modules[1]:
            lines += ["", "Milliseconds a sentence and share, by module:", "", text_table(*modules)]
    return "\n".join(lines)
