"""fairseq sample -> aggressive beam search -> fairseq's n-best list."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from operator import sub
from typing import Any

from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.compat.plain_attention import plain_attention
from fairseq_aggdec.decoding.beam.look_ahead import look_ahead
from fairseq_aggdec.decoding.beam.loop import NotNumbersError, aggressive_beam_search
from fairseq_aggdec.decoding.beam.plain import plain_beam_search
from fairseq_aggdec.decoding.beam.search import BeamOptions, BeamStats, Output
from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.decoding.tokens import Decoded
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.choose_backend import on_device, weight_of
from fairseq_aggdec.engine.native.beam_step import beam_step
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.hypotheses import NBest, nan_error
from fairseq_aggdec.generation.samples import Batch

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
        """See `AggressiveGenerator`; `budget`: about how many prefixes of a sentence to score ahead in a pass; None:
        as many as pay.
        """
        super().__init__(*given, **options)
        self._budget = budget
        self._share = _LEAST_SHARE

    def _generate(self, *given: Any, **named: Any) -> list[NBest]:
        if self._falls_back():
            return self._by_fairseq(*given, **named)
        with suppress(NotNumbersError):
            return super()._generate(*given, **named)

        # fairseq's own search drops a hypothesis that overflows and continues with the others
        if self.no_repeat_ngram_size > 0 or self._engines.arithmetic != AS_THE_MODEL:
            raise AggdecError(
                "the scores of a hypothesis are NaN. fairseq's own search could drop it, but has no --bf16, --int8, "
                "--bit-exact or --block-ngrams: leave this option out"
            )
        try:
            return self._by_fairseq(*given, **named)
        except AssertionError:  # no hypothesis is left
            raise nan_error("a sentence's") from None

    def _by_fairseq(self, *given: Any, **named: Any) -> list[NBest]:
        # another generator may have set it to its beam
        with plain_attention(self.model.models):
            return SequenceGenerator._generate(self, *given, **named)

    def _falls_back(self) -> bool:
        """Whether fairseq's own search decodes, because the engine does not support the model; logged once."""
        models = self.model.models
        device = weight_of(models[0]).device
        with self._engines.batch(), on_device(device), plain_attention(models):
            reason = self._verifiers.unsupported()
        if self.vocab_size <= 2 * self.beam_size:
            reason = f"{self.vocab_size} symbols, and a beam of {self.beam_size}"
        if reason is None:
            return False
        if self.no_repeat_ngram_size > 0:
            raise AggdecError(
                f"--block-ngrams needs this plugin's engine, which does not support {reason}"
            )
        self._verifiers.say_fallback("fairseq's own beam search decodes", reason)
        return True

    def _decode(self, batch: Batch) -> Sequence[Sequence[Decoded]]:
        batch = self._verifiers.encode(batch)
        options = BeamOptions(
            self.beam_size,
            self.eos,
            batch.rules.max_len,
            self.vocab_size,
            self.normalize_scores,
            self.len_penalty,
            max(0.0, -self.unk_penalty),
        )

        # how far to look ahead, and the sources as outputs that copy them would have them
        most = self._most_ahead(batch)
        texts = []
        if most > 0:
            texts = [source[:-1] for source in self._sources.in_target(batch.source)]
        budget = most if self._budget is not None or self._share >= _LEAST_SHARE else 0

        # search, and learn how much outputs resemble their sources
        found = None
        on_device = self._device_loop(batch, options) if budget == 0 else None
        if on_device is not None:
            found = on_device(
                self._verifiers.start(batch, self.temperature), batch.first_tokens
            )
        if found is None:
            found = self._search_on_host(batch, options, budget, texts)
        for text, (outputs, _) in zip(texts, found, strict=bool(texts)):
            self._learn(text, outputs)
        if not all(outputs for outputs, _ in found):
            raise AggdecError(
                "no hypothesis is left: --prefix-size, suppressed tokens, blocked n-grams and the allowed lengths "
                "exclude all (fairseq's own search fails, too); relax one of them"
            )
        return [_decoded(outputs, stats) for outputs, stats in found]

    def _search_on_host(
        self,
        batch: Batch,
        options: BeamOptions,
        budget: int,
        texts: Sequence[Sequence[int]],
    ) -> list[tuple[list[Output], BeamStats]]:
        """The outputs of each sentence, best first; `texts`: sources to look ahead by.

        Searched in C with a step a pass, or over the rows that are known.
        """
        rules = batch.rules
        verifier = self._verifiers.start(batch, self.temperature)
        if isinstance(verifier, RecomputeVerifier):
            # fairseq's own search decodes: the weights have changed since `_falls_back`
            raise NotNumbersError
        common = len(next(iter(rules.common_prefix), ()))
        is_common = rules.prefix is None or (
            common > 0 and common == rules.prefix.size(1)
        )
        if budget == 0 and is_common:
            step = beam_step(len(batch.longest), options)
            if step is not None:
                return plain_beam_search(
                    verifier, rules, options, batch.first_tokens, step, batch.device
                )
        plan = partial(look_ahead, sources=texts, prefixes=budget)
        return aggressive_beam_search(
            verifier, rules, options, batch.first_tokens, plan, batch.device
        )

    def _most_ahead(self, batch: Batch) -> int:
        """How many of a sentence's prefixes to score ahead in a pass where outputs resemble their sources.

        It pays where a pass costs much before its first prefix, for calls and for reading weights.
        """
        if self._budget is not None:
            return self._budget
        if (
            self._sources.words is None
            or self._verifiers.backend(batch.device).sync_is_costly
        ):
            return 0  # a GPU takes a step of a beam in the time of a token
        fixed = self._drafting.costs.fixed + self._drafting.costs.free
        return (
            _AHEAD if fixed >= _LEAST_BEAMS * self.beam_size * len(batch.longest) else 0
        )

    def _learn(self, source: Sequence[int], outputs: Sequence[Output]) -> None:
        """Learn from a sentence how much outputs resemble their sources."""
        words = set(source)
        if words and outputs:
            share = len(words.intersection(outputs[0].tokens)) / len(words)
            self._share += _WEIGHT_OF_LAST * (share - self._share)


def _decoded(outputs: Sequence[Output], stats: BeamStats) -> list[Decoded]:
    """The outputs of one search; the prefixes scored ahead in a pass count as its draft."""
    taken = SentenceStats(
        drafted=list(map(sub, stats.positions, stats.needed)),
        accepted=[max(0, steps - 1) for steps in stats.steps],
        committed=stats.steps,
    )
    return [
        Decoded(output.tokens, output.log_probs, taken, score=output.score)
        for output in outputs
    ]
