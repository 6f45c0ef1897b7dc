"""fairseq sample -> aggressive beam search -> fairseq's n-best list."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_aggdec.decoding.beam.look_ahead import look_ahead
from fairseq_aggdec.decoding.beam.loop import NotNumbersError, aggressive_beam_search
from fairseq_aggdec.decoding.beam.plain import plain_beam_search
from fairseq_aggdec.decoding.beam.search import BeamOptions, BeamStats, Output
from fairseq_aggdec.decoding.stats import BeamTotals, SentenceStats
from fairseq_aggdec.decoding.tokens import Decoded
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.choose_backend import on_device, weight_of
from fairseq_aggdec.engine.native.beam_step import beam_step
from fairseq_aggdec.engine.plain_attention import plain_attention
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.generator import NAN_SCORES, AggressiveGenerator

logger = logging.getLogger(__name__)

_AHEAD = 16
"""prefixes of a sentence to score ahead in a pass; 32 bring hardly more (docs/aggressive-beam.md)"""
_LEAST_BEAMS = 1.5
"""beams of a batch that must cost no more than a pass costs before its first prefix"""
_LEAST_SHARE = 0.7
"""least share of a source's words that its output has, too, in a running mean"""
_WEIGHT_OF_LAST = 0.3
"""weight of the last sentence in this mean"""


class AggressiveBeamGenerator(AggressiveGenerator):
    """Drop-in for fairseq's beam search: the same n-best lists, in fewer passes of the decoder.

    In `stats` and `steps` an iteration is a pass of the verifier, a committed token a step of the search, a drafted
    token a prefix scored before the search needed it, and an accepted token a step beyond the first step of a pass.
    """

    def __init__(self, *given: Any, budget: int | None = None, **options: Any) -> None:
        """See `AggressiveGenerator`; `budget`: number of prefixes per sentence to score ahead in a pass, about; None:
        the number that pays.
        """
        super().__init__(*given, **options)
        self.totals = BeamTotals()
        self._budget = budget
        self._fixed_costs: dict[torch.device, float] = {}  # of a pass: calls and reading weights, in prefixes
        self._share = _LEAST_SHARE

    def _generate(self, sample: dict[str, Any], *rest: Any, **named: Any) -> list[list[dict[str, Any]]]:
        if self._falls_back():
            with plain_attention(self.model.models):  # another generator may have set it to its beam
                return SequenceGenerator._generate(self, sample, *rest, **named)
        with suppress(NotNumbersError):
            return super()._generate(sample, *rest, **named)
        return self._decode_without_overflow(sample, *rest, **named)

    def _decode_without_overflow(self, sample: dict[str, Any], *rest: Any, **named: Any) -> list[list[dict[str, Any]]]:
        """Decode by fairseq's own search, which drops a hypothesis that overflows and continues with the others."""
        if self.no_repeat_ngram_size > 0 or self._engines.arithmetic != AS_THE_MODEL:
            raise AggdecError(
                "the scores of a hypothesis are NaN. fairseq's own search could drop it, but has no --bf16, --int8, "
                "--bit-exact or --block-ngrams: leave this option out"
            )
        try:
            with plain_attention(self.model.models):
                return SequenceGenerator._generate(self, sample, *rest, **named)
        except AssertionError:  # no hypothesis is left
            raise AggdecError(f"a sentence's {NAN_SCORES}") from None

    def _decode(
        self, sample: dict[str, Any], prefix_tokens: Tensor | None, first_tokens: Tensor, start: int
    ) -> Sequence[Sequence[Decoded]]:
        net_input, device = sample["net_input"], sample["net_input"]["src_tokens"].device
        encoder_outs = [self._engines.encode(model, net_input) for model in self.model.models]
        verifier = self._make_verifier(encoder_outs)
        rules = self._rules(net_input, prefix_tokens)
        options = BeamOptions(
            self.beam_size,
            self.eos,
            rules.max_len,
            self.vocab_size,
            self.normalize_scores,
            self.len_penalty,
            max(0.0, -self.unk_penalty),
        )
        # how far to look ahead, and the sources as outputs that copy them would have them
        most = self._most_ahead(first_tokens.size(0)) if self._budget is None else self._budget
        sources = [sentence[:-1] for sentence in self._drafting.align(net_input["src_tokens"])] if most else []
        budget = most if self._budget is not None or self._share >= _LEAST_SHARE else 0

        # search: in a loop on the device, in C with a step a pass, or over the rows that are known
        found = None
        on_device = self._device_loop(rules, options) if budget == 0 else None
        if on_device is not None:
            found = on_device(verifier, first_tokens)
            if found is None:
                verifier = self._make_verifier(encoder_outs)
        if isinstance(verifier, RecomputeVerifier):
            raise NotNumbersError  # fairseq's own search decodes: the weights have changed since `_falls_back`
        forced = rules.common_prefix
        is_common = rules.prefix is None or (len(forced) > 0 and len(forced[0]) == rules.prefix.size(1))
        is_plain = budget == 0 and is_common
        step = beam_step(first_tokens.size(0), options.size, options.eos) if is_plain and found is None else None
        if step is not None:
            found = plain_beam_search(verifier, rules, options, first_tokens, step, device)
        elif found is None:
            plan = partial(look_ahead, sources=sources, prefixes=budget)
            found = aggressive_beam_search(verifier, rules, options, first_tokens, plan, device)
        for source, (outputs, _) in zip(sources, found, strict=bool(sources)):
            self._learn(source, outputs)
        if not all(outputs for outputs, _ in found):
            raise AggdecError(
                "no hypothesis is left: --prefix-size, suppressed tokens, blocked n-grams and the allowed lengths "
                "exclude all (fairseq's own search fails, too); relax one of them"
            )
        return [_Scored.list_of(outputs, stats) for outputs, stats in found]

    def _scores(self, sentences: Sequence[Decoded], log_probs: Sequence[Tensor]) -> Sequence[float]:
        return [sentence.score for sentence in sentences if isinstance(sentence, _Scored)]

    def _most_ahead(self, sentences: int) -> int:
        """The number of a sentence's prefixes to score ahead in a pass where outputs resemble their sources.

        It pays where a pass costs much before its first prefix, for calls and for reading weights.
        """
        engine = self._engines.decoder(self.model.models[0].decoder)
        if self.src_dict is None or (engine is not None and engine.backend.padding_is_free):
            return 0  # a GPU takes a step of a beam in the time of a token
        device = weight_of(self.model.models[0]).device
        if device not in self._fixed_costs:
            costs = self._drafting.costs()
            self._fixed_costs[device] = costs.fixed + costs.free
        return _AHEAD if self._fixed_costs[device] >= _LEAST_BEAMS * self.beam_size * sentences else 0

    def _learn(self, source: Sequence[int], outputs: Sequence[Output]) -> None:
        """Learn from a sentence how much outputs resemble their sources."""
        words = set(source)
        if words and outputs:
            share = len(words.intersection(outputs[0].tokens)) / len(words)
            self._share += _WEIGHT_OF_LAST * (share - self._share)

    def _falls_back(self) -> bool:
        """Whether fairseq's own search decodes, because the engine does not support the model; logged once."""
        device = weight_of(self.model.models[0]).device
        with self._engines.batch(), on_device(device), plain_attention(self.model.models):
            reasons = [self._engines.unsupported(model.decoder) for model in self.model.models]
        reason = next(filter(None, reasons), None)
        if self.vocab_size <= 2 * self.beam_size:
            reason = f"{self.vocab_size} symbols, and a beam of {self.beam_size}"
        if reason is None:
            return False
        if self.no_repeat_ngram_size > 0:
            raise AggdecError(f"--block-ngrams needs this plugin's engine, which does not support {reason}")
        if not self._said_fallback:
            self._said_fallback = True
            logger.warning(f"fairseq's own beam search decodes, because this plugin's engine does not support {reason}")
        return True


@dataclass
class _Scored(Decoded):
    """A hypothesis of a beam search."""

    score: float = 0.0
    """sort key of the n-best list"""

    @classmethod
    def list_of(cls, outputs: Sequence[Output], stats: BeamStats) -> "list[_Scored]":
        """The outputs of one search; the prefixes scored ahead in a pass count as its draft."""
        drafted = [positions - needed for positions, needed in zip(stats.positions, stats.needed, strict=True)]
        taken = SentenceStats(drafted, [max(0, steps - 1) for steps in stats.steps], stats.steps)
        return [cls(output.tokens, output.log_probs, taken, score=output.score) for output in outputs]
