"""Writes the records of all parts as one Markdown page."""

from collections.abc import Sequence
from typing import Any

from fairseq_aggdec.lab.benchmarking.machine import describe
from fairseq_aggdec.lab.benchmarking.record import Record, record_of
from fairseq_aggdec.lab.benchmarking.tables import speed_table
from fairseq_aggdec.lab.grid import text_table


def markdown(records: Sequence[dict[str, Any]]) -> str:
    """The page: machines, the state of each step, and the results of each.

    Args:
        records: records of parts, from `running.run`.
    """
    steps = [step for record in records for step in record["steps"]]
    machines = list(dict.fromkeys(describe(step["machine"]) for step in steps))
    commits = list(dict.fromkeys(str(step["commit"]) for step in steps))
    dates = sorted(step["date"] for step in steps)
    gpus = list(dict.fromkeys(map(_gpu, steps)))
    lines = [
        f"# Measured on {', '.join(gpus)}",
        "",
        f"Commit {', '.join(commits)}; {dates[0][:10]} to {dates[-1][:10]}.",
        *machines,
        "",
        text_table(
            ["part", "step", "", "seconds", "on", "commit"],
            [
                [record["part"], step["name"], step["state"], f"{step['seconds']:.0f}", _gpu(step), step["commit"]]
                for record in records
                for step in record["steps"]
            ],
        ),
    ]
    for record in records:
        lines += ["", f"## {record['title']}"]
        for step in record["steps"]:
            lines += ["", f"### {step['name']}", "", f"`{step['command']}`", "", *_body(step)]
    return "\n".join(lines)


def _gpu(step: dict[str, Any]) -> str:
    return str(step["machine"].get("gpu", "no GPU (rehearsal)"))


def _body(step: dict[str, Any]) -> list[str]:
    """The tables of a benchmark; for other steps and failed ones, the end of what they printed."""
    result = step.get("result")
    if isinstance(result, dict) and "runs" in result and "source_tokens" in result:
        return _benchmark(record_of(result, step["name"]))
    lines = [line for line in step["output"] if line.strip()]
    return ["```", *(lines[-3:] if step["state"] == "done" and result is None else lines), "```"]


def _benchmark(record: Record) -> list[str]:
    lines = [f"{record.title}."]
    for size in record.batch_sizes:
        lines += ["", f"Batch size {size}:", "", text_table(*speed_table(record.at(size)))]
    return lines
