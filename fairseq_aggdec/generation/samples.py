"""A sample of fairseq as a batch: its sources, and the rules of the search for its outputs."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary
from fairseq.search import BeamSearch, LengthConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_aggdec.decoding.drafters.input_guided import (
    FOREIGN,
    PromptTemplate,
    align_source,
)
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import flat
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.options import Decoding

logger = logging.getLogger(__name__)


class Batch(NamedTuple):
    """What is decoded at once."""

    sample: dict[str, Any]
    """fairseq's"""
    source: Tensor
    """`src_tokens`, B x S; on the host where drafts copy it, since later the host would wait for the encoder"""
    rules: SearchRules
    longest: list[int]
    """B, the longest output of each sentence, its EOS not counted"""
    first_tokens: Tensor
    """the decoder's first input, B, on the host, which would wait for the encoder to read it"""
    encoder_outs: Sequence[dict[str, Any]] = ()
    """output of each verifier's encoder"""

    @property
    def net_input(self) -> dict[str, Any]:
        """What an encoder reads."""
        return self.sample["net_input"]

    @property
    def device(self) -> torch.device:
        """The device of the sample, and of the models."""
        return self.net_input["src_tokens"].device

    def ids(self, first: int = 0) -> list[int]:
        """B, fairseq's id of each sentence; counted from `first` on where the sample has none."""
        if "id" in self.sample:
            return self.sample["id"].tolist()
        return [*range(first, first + len(self.longest))]


def batch_of(
    search: SequenceGenerator,
    decoding: Decoding,
    sample: dict[str, Any],
    prefix_tokens: Tensor | None,
    bos_token: int | None,
) -> Batch:
    """Prepare a sample for decoding; `search` has the options of the search.

    Raises `AggdecError` for samples and options that the mode cannot honour.
    """
    net_input = sample["net_input"]
    if "src_tokens" not in net_input:
        raise AggdecError(
            f"--decoding {decoding.mode} reads src_tokens, and samples have {', '.join(net_input)}: use --decoding beam"
        )
    source = net_input["src_tokens"]
    if torch.is_autocast_enabled(source.device.type):
        raise AggdecError(
            f"--decoding {decoding.mode} does not follow torch.autocast: decode outside of it, with the precision "
            "of the model's weights (--fp16, --bf16, or model.half())"
        )

    # the longest output of each sentence, as fairseq limits it
    rows, width = source.shape[:2]
    longest = [
        min(int(search.max_len_a * width + search.max_len_b), search.max_len - 1)
    ] * rows
    lengths = None
    if search.match_source_len:
        lengths = source_lengths(search, net_input)
        longest = lengths.tolist()
    return Batch(
        sample,
        source.cpu() if decoding.row.copies else source,
        _rules(search, prefix_tokens, max(longest), lengths),
        longest,
        flat([[search.eos if bos_token is None else bos_token] * rows]),
    )


def source_lengths(search: SequenceGenerator, net_input: dict[str, Any]) -> Tensor:
    """The length of each source as fairseq counts it, B."""
    if "src_lengths" in net_input:
        return net_input["src_lengths"]
    source = net_input["src_tokens"]
    return (source.ne(search.eos) & source.ne(search.pad)).long().sum(dim=1)


def _rules(
    search: SequenceGenerator,
    prefix: Tensor | None,
    max_len: int,
    lengths: Tensor | None,
) -> SearchRules:
    if search.min_len > max_len:
        raise AggdecError(
            f"--min-len {search.min_len} is above the longest output allowed here, {max_len} tokens "
            "(--max-len-a, --max-len-b and the model's positions): lower it or raise them"
        )
    suppressed = search.token_indices_to_suppress
    return SearchRules(
        pad=search.pad,
        unk=search.unk,
        eos=search.eos,
        max_len=max_len,
        symbols=search.vocab_size,
        min_len=search.min_len,
        unk_penalty=search.unk_penalty,
        no_repeat_ngram_size=search.no_repeat_ngram_size,
        suppressed=() if suppressed is None else tuple(suppressed.tolist()),
        prefix=prefix,
        source_lengths=lengths,
    )


def check_search(search: SequenceGenerator, mode: str) -> None:
    """Refuse a language model, and search strategies other than those of fairseq's translation task."""
    if search.lm_model is not None:
        raise AggdecError(
            f"--decoding {mode} cannot honour a language model; use --decoding beam"
        )
    strategy = search.search
    expected = "BeamSearch"
    is_known = type(strategy) is BeamSearch
    if search.match_source_len:
        expected = "LengthConstrainedBeamSearch(tgt_dict, 1, 0, 1, 0) with its EOS, because of match_source_len"
        is_known = type(strategy) is LengthConstrainedBeamSearch
        if is_known:
            bounds = (
                strategy.min_len_a,
                strategy.min_len_b,
                strategy.max_len_a,
                strategy.max_len_b,
            )
            # fairseq's would hold back another symbol
            is_known = bounds == (1, 0, 1, 0) and strategy.eos == search.eos
    if not is_known:
        raise AggdecError(
            f"search_strategy {type(strategy).__name__}: the plugin's modes have {expected}, only"
        )


def effective_ngram_size(search: SequenceGenerator, decoding: Decoding) -> int:
    """The n-gram size in force; 0 where fairseq's n-gram blocker does not work and `block_ngrams` is not set.

    Without its CUDA extension fairseq's blocker compares padding and bans nothing.
    """
    blocker = search.repeat_ngram_blocker
    if blocker is None:
        return 0
    size: int = blocker.no_repeat_ngram_size
    if decoding.block_ngrams or blocker.use_extension:
        return size
    logger.warning(
        f"--no-repeat-ngram-size {size} has no effect here, as in fairseq's own search, whose n-gram blocker "
        "needs its CUDA extension; add --block-ngrams to have repeated n-grams banned"
    )
    return 0


@dataclass
class Sources:
    """Turns sources into what an output would be that copies them."""

    words: Dictionary | None
    """the source's dictionary; None where it is no text"""
    targets: Dictionary
    eos: int
    form: PromptTemplate | None = None
    """of the sources"""

    def in_target(self, source: Tensor) -> list[list[int]]:
        """Each row in the target's vocabulary, EOS last, see `align_source`; EOS alone where the source is no text."""
        if self.words is None:
            return [[self.eos]] * source.size(0)
        rows = align_source(source, self.targets.pad(), self.eos, self._to_target)
        return (
            rows
            if self.form is None
            else [self.form.as_output(row, self.eos) for row in rows]
        )

    @cached_property
    def _to_target(self) -> list[int] | None:
        """The target of each word, V_source, `FOREIGN` where there is none; None for equal dictionaries."""
        assert self.words is not None
        if self.words.symbols == self.targets.symbols:
            return None
        indices = {symbol: index for index, symbol in enumerate(self.targets.symbols)}
        return [indices.get(symbol, FOREIGN) for symbol in self.words.symbols]
