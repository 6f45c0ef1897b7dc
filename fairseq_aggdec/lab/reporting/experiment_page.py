"""The page of `aggdec report experiment`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.reporting.experiments import find_experiment, read_experiment
from fairseq_aggdec.lab.reporting.pages import beside_page, own_page, write_figures
from fairseq_aggdec.lab.reporting.results import Results
from fairseq_aggdec.lab.reporting.tables import declared_tables


def experiment_page(args: Any, command: str, form: str) -> str:
    """An experiment's results beside the papers' tables, or a table of its own, whose figures are drawn.

    Args:
        args: the options of `aggdec report experiment`.
        command: the command that is running.
        form: form of the tables, see `grid`.

    Raises:
        AggdecError: there is no such experiment or table, or nothing was measured.
    """
    config = find_experiment(args.experiment)
    declared = declared_tables(config)
    if args.figure and args.table not in declared.own:
        raise AggdecError(f"--figure needs --table with one of {', '.join(declared.own) or 'no table here'}")
    work = args.work or Path(os.environ.get("AGGDEC_WORK", "work")) / config.name
    if not work.is_dir():
        raise AggdecError(f"--work {work}: no such folder; run the experiment's stages first")
    results = Results(config, work, args.data, declared.metrics)
    if args.table in declared.own:
        tables = declared.own[args.table](results)
        page = own_page(results, args.table, tables, command, form)
        write_figures(tables, args.figure)
        return page
    about, papers = read_experiment(config), declared.papers(results)
    if args.table:
        known = [table.table.name for table in papers]
        if args.table not in known:
            has = ", ".join([*declared.own, *known])
            raise AggdecError(f"--table {args.table}: no such table in {config}/tables.py; it has {has}")
        papers = [table for table in papers if table.table.name == args.table]
    if not results.used:
        raise AggdecError(f"{work}: nothing is decoded or measured there yet; run the experiment's stages first")
    return beside_page(results, about.title, not about.full_size, papers, command, form)
