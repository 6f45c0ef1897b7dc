"""The first sentences of a split, as binary data: python -m experiments.first DATA-BIN SPLIT NUMBER OUTPUT."""

import shutil
import sys
from itertools import islice
from pathlib import Path

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.files import folder_written_whole


@on_command_line()
def main(folder: str, split: str, number: str, output: str) -> None:
    """Write them to the folder `output`, which must not be there, with the dictionaries of `folder`."""
    data = DataBin.find(Path(folder))
    source, target = (
        islice(side, int(number)) for side in (data.source(split), data.target(split))
    )
    with folder_written_whole(Path(output)) as partial:
        for path in data.folder.glob("dict.*.txt"):
            shutil.copyfile(path, partial / path.name)
        DataBin(partial, data.source_lang, data.target_lang).write(
            split, source, target
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
