"""A part of a data folder: so many sentences of each split, drawn at random, and always the same ones."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fairseq_aggdec.distillation.data_bin import DataBin
from fairseq_aggdec.distillation.distilled_folder import write_side
from fairseq_aggdec.files import folder_written_whole

_SEED = 1


def write_sample(folder: Path, data: DataBin, sentences: Mapping[str, int]) -> DataBin:
    """Writes the part, in the order of the original, unless it is there; it has its name only when it is complete.

    Args:
        folder: the folder to make.
        data: the original data.
        sentences: the number of sentences by split; splits that are not named are left out.

    Raises:
        AggdecError: there is no such split, or its sides differ in length.
    """
    sample = DataBin(folder, data.source_lang, data.target_lang)
    if folder.is_dir():
        return sample
    with folder_written_whole(folder) as partial:
        written = DataBin(partial, data.source_lang, data.target_lang)
        for language in {data.source_lang, data.target_lang}:
            shutil.copyfile(data.folder / f"dict.{language}.txt", partial / f"dict.{language}.txt")
        for split, count in sentences.items():
            source, target = data.source(split), data.target(split)
            chosen = np.sort(np.random.RandomState(_SEED).permutation(len(source))[:count])
            for side, language, dictionary in (
                (source, data.source_lang, data.source_dictionary),
                (target, data.target_lang, data.target_dictionary),
            ):
                write_side(written.prefix(split, language), (side[int(number)] for number in chosen), dictionary)
    return sample
