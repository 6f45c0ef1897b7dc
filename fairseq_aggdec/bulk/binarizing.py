"""`aggdec binarize`: texts as a data folder for an imported model."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import dictionary_file, folder_written_whole, read_text_lines
from fairseq_aggdec.hub.settings import FILE, Settings
from fairseq_aggdec.hub.tokenizers import HubBPE, HubConfig
from fairseq_aggdec.tasks.data_folder import language_pair


def binarize(
    model: Path,
    folder: Path,
    languages: tuple[str | None, str | None],
    texts: Mapping[str, Sequence[Path]],
) -> None:
    """Write a data folder, which has its name only when it is complete, with the model's dictionaries and settings.

    Args:
        model: the folder of an imported model.
        folder: the folder to make.
        languages: of source and target; None: the model's own.
        texts: of each split the file of its sources, a sentence a line, and that of the targets. Without that one the
            targets are empty, as decoding and distilling read none.

    Raises:
        AggdecError: the model or a language is not there, or a split's files have different numbers of lines.
        OSError: a file cannot be read or written, or `folder` has files.
    """
    Settings.read(model)
    source, target = language_pair(model, *languages)
    if source == target:
        raise AggdecError(
            f"-s {source} -t {target}: fairseq's data has a name for each side; give two"
        )
    encoder = HubBPE(HubConfig(hub_folder=str(model)))
    with folder_written_whole(folder) as partial:
        # what decoding reads of the model
        for side, language in (("source", source), ("target", target)):
            shutil.copyfile(
                dictionary_file(model, side, language), partial / f"dict.{language}.txt"
            )
        shutil.copyfile(model / FILE, partial / FILE)
        # the sentences
        data = DataBin(partial, source, target)
        dictionaries = data.source_dictionary, data.target_dictionary
        for split, files in texts.items():
            sides = list(map(read_text_lines, files))
            if len(sides) > 2 or len(sides[0]) != len(sides[-1]):
                raise AggdecError(
                    f"{split}: give a file of sources, and perhaps one of as many targets"
                )
            sides += [[""] * len(sides[0])] * (2 - len(sides))
            sources, targets = (
                [
                    side.encode_line(
                        encoder.encode(line, bool(n)), add_if_not_exist=False
                    ).numpy()
                    for line in sides[n]
                ]
                for n, side in enumerate(dictionaries)
            )
            data.write(split, sources, targets)
