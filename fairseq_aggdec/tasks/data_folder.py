"""The language pair of a folder that fairseq-preprocess made."""

from argparse import Namespace
from pathlib import Path
from typing import Any, TypeAlias

from fairseq.data import data_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import dictionary_file
from fairseq_aggdec.hub.settings import Settings

TaskConfig: TypeAlias = FairseqDataclass | DictConfig | Namespace
"""a task's options: of a program, of hydra, or of a legacy task"""

Hypothesis = dict[str, Any]
"""fairseq's: `tokens`, `score`, `positional_scores` and others"""


def check_data(cfg: TaskConfig) -> None:
    """Raise `AggdecError` where no data folder is named, or it is missing, or lacks a language pair or a dictionary."""
    if not cfg.data:
        raise AggdecError(
            "no data folder given: name the folder that fairseq-preprocess made, with its dict.*.txt"
        )
    language_pair(Path(str(cfg.data).split(":")[0]), cfg.source_lang, cfg.target_lang)


class NamesMissingSplit(FairseqTask):
    """Mixin, named before fairseq's task: `load_dataset` raises `AggdecError` for a missing split."""

    def load_dataset(self, split: str, *args: Any, **kwargs: Any) -> None:
        # the tasks with a data manager have a table of splits
        missing = (
            (FileNotFoundError, KeyError)
            if hasattr(self, "data_manager")
            else FileNotFoundError
        )
        try:
            super().load_dataset(split, *args, **kwargs)
        except missing as error:
            raise AggdecError(
                f"{error}: no such split; check the data folder, --gen-subset, --train-subset and --valid-subset"
            ) from error


def language_pair(
    folder: Path, source: str | None = None, target: str | None = None
) -> tuple[str, str]:
    """The languages of a folder's data; a language that is not given is inferred from file names, as by fairseq.

    Without such files those of an imported model are its own. Raises `AggdecError` where there is no such folder, it
    lacks data of a language pair, or a dictionary, or the model has no such language.
    """
    if not folder.is_dir():
        raise AggdecError(
            f"{folder}: no such data folder; it is made by fairseq-preprocess"
        )
    # languages that are not given
    settings = Settings.found(folder)
    if source is None or target is None:
        found = data_utils.infer_language_pair(str(folder))
        if settings is not None and None in found:
            found = settings.source_lang, settings.target_lang
        source = source or found[0]
        target = target or found[1]
    if settings is not None and not (source and target):
        missing = " and ".join(
            option for option, name in (("-s", source), ("-t", target)) if not name
        )
        raise AggdecError(settings.needs(missing))
    if not source or not target:
        raise AggdecError(
            f"{folder}: no data of a language pair here; check it, or give --source-lang, --target-lang"
        )
    # the model's languages, and the dictionaries
    if settings is not None:
        settings.prompt_template(source, target)
    for side, language in (("source", source), ("target", target)):
        if not dictionary_file(folder, side, language).is_file():
            raise AggdecError(
                f"{folder}: has no dict.{language}.txt; check --source-lang and --target-lang"
            )
    return source, target
