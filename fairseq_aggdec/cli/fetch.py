"""`python -m fairseq_aggdec.cli.fetch PREPARE.yaml`: downloads an experiment's data sets from their public addresses.

Stage `prepare` of scripts/reproduce.sh runs it. Files that must be asked for, or all files where there is no network,
are put by hand into the folders that the error message names.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.data.originals import DataSet
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.structured_files import read_yaml


def data_set(name: str, descriptions: Path, data: Path) -> DataSet:
    """A data set by its name.

    Args:
        name: the name of its file in `descriptions`, without `.yaml`, and of its folder in `data`.
        descriptions: the folder configs/shared/data.
        data: the folder of all data sets.

    Raises:
        AggdecError: there is no description of that name.
    """
    file = descriptions / f"{name}.yaml"
    if not file.is_file():
        known = ", ".join(sorted(path.stem for path in descriptions.glob("*.yaml")))
        raise AggdecError(f"unknown data set {name}: {descriptions} describes {known or 'none'}")
    return DataSet(name, read_yaml(file), data / name)


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: a file is damaged, or cannot be downloaded.
    """
    parser = argparse.ArgumentParser(prog="fairseq_aggdec.cli.fetch", description=__doc__)
    parser.add_argument("config", type=Path, help="an experiment's prepare.yaml, with a list `data_sets`")
    parser.add_argument("--descriptions", type=Path, required=True, help="folder of the data sets' descriptions")
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the data sets, one folder each")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    sets = [data_set(name, args.descriptions, args.data) for name in read_yaml(args.config).get("data_sets", [])]
    problems = []
    for item in sets:
        try:
            item.build()
        except AggdecError as error:  # one message names all missing files
            problems.append(str(error))
    if problems:
        raise AggdecError("\n".join(problems))


if __name__ == "__main__":
    main()
