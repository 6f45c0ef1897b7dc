"""`aggdec distill --from-generate`: targets from outputs of fairseq-generate, every sentence of which is checked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from tqdm import tqdm

from fairseq_aggdec.distillation.data_bin import DataBin, Side, Tokens
from fairseq_aggdec.distillation.generate_output import GeneratedSentence, GenerateOutput
from fairseq_aggdec.errors import AggdecError

logger = logging.getLogger(__name__)

_NAMED = 10
"""the most sentences that a message names"""


def gather_generated(
    files: Sequence[Path], data: DataBin, split: str, max_source_len: int | None = None
) -> list[Tokens | None]:
    """The best hypothesis for each sentence of a split.

    Args:
        files: outputs of fairseq-generate without --remove-bpe, together the whole split.
        data: the data that were decoded.
        split: the split's name.
        max_source_len: the longest source, EOS included, that was decoded; longer ones may be missing. Not needed where
            a file has fairseq-generate's message about sentences that it skips.

    Returns:
        the target of each sentence, EOS included; None where it was skipped for its length.

    Raises:
        AggdecError: a sentence is missing, damaged, from other data, or not of the dictionary; the message names it.
    """
    output = GenerateOutput()
    for path in files:
        output.add_file(path)
    sources, references = data.source(split), data.target(split)
    if beyond := sorted(number for number in output.sentences if number >= len(sources)):
        raise AggdecError(
            f"{output.sentences[beyond[0]].place}: sentence {beyond[0]}, but {split} in {data.folder} has only "
            f"{len(sources)} sentences; was it decoded from other data?"
        )
    skipped = _too_long(sources, references, output, max_source_len)
    targets: list[Tokens | None] = []
    missing, mended = [], 0
    for number in tqdm(range(len(sources)), desc=f"gather {split}", unit=" sentences", disable=None):
        sentence = output.sentences.get(number)
        if sentence is None:
            targets.append(None)
            if not skipped[number]:
                missing.append(number)
            continue
        _check_source(number, sentence, sources, data.source_dictionary)
        targets.append(_target(number, sentence, data.target_dictionary))
        mended += sentence.mended
    if missing:
        raise AggdecError(
            f"{', '.join(map(str, files))}: no line at all of {_named(missing)} of {split}; decode {split} to the end, "
            "and if fairseq-generate skipped them for their length, say --max-source-len"
        )
    if mended:
        logger.warning(f"{split}: a progress bar stood among the lines of {mended:,} sentences; all were recovered")
    if left := [number for number, target in enumerate(targets) if target is None]:
        logger.warning(f"{split}: fairseq-generate has skipped {_named(left)} for the length")
    return targets


def encode(text: str, dictionary: Dictionary) -> Tokens | None:
    """The symbol numbers of subwords joined by spaces, and EOS; None if a subword is not in the dictionary."""
    numbers = []
    for symbol in text.split(" ") if text else ():
        number = dictionary.index(symbol)
        if number == dictionary.unk() and symbol != dictionary.unk_word:
            return None
        numbers.append(number)
    return np.array([*numbers, dictionary.eos()], dtype=np.int32)


def _too_long(sources: Side, references: Side, output: GenerateOutput, max_source_len: int | None) -> np.ndarray:
    """Whether fairseq-generate may have skipped each sentence."""
    skipped = sources.sizes > (max_source_len or np.inf)
    for longest_source, longest_target in output.limits:
        skipped |= (sources.sizes > longest_source) | (references.sizes > longest_target)
    return np.asarray(skipped)


def _check_source(number: int, sentence: GeneratedSentence, sources: Side, dictionary: Dictionary) -> None:
    for readings in sentence.sources:
        encoded = [encode(reading, dictionary) for reading in readings]
        if not any(tokens is not None and np.array_equal(tokens, sources[number]) for tokens in encoded):
            raise AggdecError(
                f"{sentence.place}: the source of sentence {number} is not that of the data: it was decoded from other "
                "data, printed with --remove-bpe or --post-process, or the line is damaged"
            )


def _target(number: int, sentence: GeneratedSentence, dictionary: Dictionary) -> Tokens:
    """The first hypothesis; exactly one of its readings must fit the dictionary and the number of scores."""
    if len(sentence.hypotheses) < max(1, len(sentence.scores)):
        raise AggdecError(
            f"{sentence.place}: sentence {number} has lines, but {len(sentence.hypotheses) or 'no'} H- line"
            f"{f' for {len(sentence.scores)} P- lines' if sentence.hypotheses else ''}; decode it again, with standard "
            "error kept apart"
        )
    encoded = [encode(reading, dictionary) for reading in sentence.hypotheses[0]]
    known = [tokens for tokens in encoded if tokens is not None]
    lengths = sentence.scores[0] if len(sentence.scores) == len(sentence.hypotheses) else None
    fitting = [tokens for tokens in known if lengths is None or len(tokens) in lengths]
    if len(fitting) == 1:
        return fitting[0]
    if not encoded:
        reason = "is damaged"
    elif not known:
        reason = "has symbols that are not in the target dictionary; it must be printed without --remove-bpe, --bpe"
        reason += " and --replace-unk"
    elif not fitting:
        reason = "does not have as many tokens as scores in its P- line: the line is damaged"
    else:
        reason = "was cut by a progress bar and can be read in two ways: the line is damaged"
    raise AggdecError(f"{sentence.place}: the hypothesis of sentence {number} {reason}")


def _named(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:_NAMED])) + (", ..." if len(numbers) > _NAMED else "")
    return f"{len(numbers):,} sentence{'s' if len(numbers) > 1 else ''} ({named})"
