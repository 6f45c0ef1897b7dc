"""Whether a folder is what fairseq-preprocess makes, and what does not fit a model."""

from pathlib import Path
from typing import Any

from fairseq.data import Dictionary, data_utils

from fairseq_aggdec.errors import AggdecError


def check_data(cfg: Any) -> None:
    """Find the dictionaries before a model is loaded.

    Args:
        cfg: the configuration of a translation task.

    Raises:
        AggdecError: the data folder is not named, not there or without dictionaries.
    """
    if not cfg.data:
        raise AggdecError("no data folder given: name the folder that fairseq-preprocess made, with its dict.*.txt")
    folder = Path(str(cfg.data).split(":")[0])
    if not folder.is_dir():
        raise AggdecError(f"{folder}: no such data folder; it is made by fairseq-preprocess")
    languages = (cfg.source_lang, cfg.target_lang)
    if None in languages:  # as fairseq does it
        languages = data_utils.infer_language_pair(str(folder))
    if None in languages:
        raise AggdecError(f"{folder}: no data of a language pair here; check it, or give --source-lang, --target-lang")
    for lang in languages:
        if not (folder / f"dict.{lang}.txt").is_file():
            raise AggdecError(f"{folder}: has no dict.{lang}.txt; check --source-lang and --target-lang")


def too_long(dataset: Any, number: int, first: int, limit: str, dictionary: Dictionary, others: int = 0) -> str:
    """What to say of a sentence that is longer than allowed.

    Args:
        dataset: a fairseq `LanguagePairDataset`.
        number: of the sentence within it.
        first: the number of its first sentence in all that is read.
        limit: who allows how much, such as `the model takes 512`.
        dictionary: the source's.
        others: how many more there are.
    """
    text = dictionary.string(dataset.src[number])
    more = f" (and {others} more)" if others else ""
    return (
        f"line {first + number + 1} (S-{first + number}){more} is too long: {of_both_sides(dataset.size(number))} "
        f"tokens, while {limit}: '{text[:60]}...'. Shorten it, or leave such sentences out with "
        "--skip-invalid-size-inputs-valid-test"
    )


def of_both_sides(lengths: Any) -> str:
    """One number, or that of the source and that of the target where there is one and it is another."""
    source, target = lengths if isinstance(lengths, tuple) else (lengths, lengths)
    return f"{source:.0f}" if target in (0, source) else f"{source:.0f} (source) and {target:.0f} (target)"
