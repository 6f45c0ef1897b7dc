"""Decodes a case in all its modes and compares them with stock fairseq."""

import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import torch
from fairseq.search import LengthConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_aggdec.engine.arithmetic.precision import Arithmetic
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.lab.lossless.differences import beam_gap_of, differences, gap_of
from fairseq_aggdec.lab.lossless.fuzzing.cases import Case
from fairseq_aggdec.lab.lossless.fuzzing.drafters import FuzzedGenerator
from fairseq_aggdec.lab.lossless.fuzzing.random_models import (
    dictionary,
    random_network,
    share_encoder,
    twin_words,
)

_TRAINED = 8
"""block size that drafters are made with"""
_SCORES = 1e-4
"""absolute and relative tolerance for the log-probabilities of the same token"""

Hypotheses = dict[int, dict[str, Any]]
"""by sentence number"""


@dataclass
class Finding:
    """A fault in one mode."""

    mode: int
    what: str
    """`tokens`, `scores`, `bits`, `counters` or an exception's type"""
    text: str


@dataclass
class ModeResult:
    """Counters of one mode."""

    sentences: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    near_ties: int = 0
    refused: int = 0
    """number of sentences that were not decoded, since this machine cannot compute in the precision"""


@dataclass
class CaseResult:
    refused: str = ""
    """error of stock fairseq, if it did not decode this case; nothing is compared then"""
    sentences: int = 0
    modes: list[ModeResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


class Checker:
    """The models, batches and reference outputs of a case, made when first needed."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._engines: dict[Arithmetic, Engines] = {}
        self.source = dictionary(case.words[0])
        self.target = self.source if case.joined else dictionary(case.words[1], offset=3)

    @cached_property
    def models(self) -> list[Any]:
        return [self._model(options, n) for n, options in enumerate(self.case.models)]

    @cached_property
    def samples(self) -> list[dict[str, Any]]:
        return [self._sample(batch) for batch in self.case.batches if batch]

    @cached_property
    def stock(self) -> SequenceGenerator:
        return self._stock(1)

    def _stock(self, beam: int) -> SequenceGenerator:
        return SequenceGenerator(self.models, self.target, beam_size=beam, **self._search_by_fairseq())

    def _search_by_fairseq(self) -> dict[str, Any]:
        """With the strategy that fairseq's task adds."""
        search = self._search()
        if search.get("match_source_len"):
            search["search_strategy"] = LengthConstrainedBeamSearch(self.target, 1, 0, 1, 0)
        return search

    @cached_property
    def reference(self) -> Hypotheses:
        return self._decode(self.stock, self.samples)

    def check(self) -> CaseResult:
        """Compare each mode with the reference."""
        result = CaseResult()
        try:
            result.sentences = len(self.reference)
        except Exception as error:
            result.refused = f"{type(error).__name__}: {error}"
            return result
        for number, mode in enumerate(self.case.modes):
            mode_result = ModeResult()
            result.modes.append(mode_result)
            try:
                found = self._check_mode(mode, mode_result)
                for what in dict.fromkeys(what for what, _ in found):
                    first, *others = [text for sort, text in found if sort == what]
                    more = f" (and {len(others)} more)" if others else ""
                    result.findings.append(Finding(number, what, first + more))
            except Exception as error:
                where = traceback.format_exc(limit=-3).strip()
                result.findings.append(Finding(number, type(error).__name__, where))
        return result

    def _check_mode(self, mode: Mapping[str, Any], result: ModeResult) -> list[tuple[str, str]]:
        if mode["decoding"] == "aggressive-beam":
            return self._check_beam(mode, result)
        arithmetic = Arithmetic(mode.get("precision", "own"), mode.get("bit_exact", False))
        engines = self._engines.setdefault(arithmetic, Engines(arithmetic))
        expected = self.reference
        if arithmetic != Arithmetic():
            greedy = self._ours({"decoding": "greedy"}, engines, {})
            try:
                expected = self._decode(greedy, self.samples)
            except AggdecError:
                result.refused = len(self.reference)
                return []
        generator = self._used(self._ours(mode, engines, _tokens(expected)))
        found = self._decode(generator, self._split(mode.get("split", 0)))
        totals = generator.totals
        result.sentences, result.tokens = totals.sentences, totals.committed
        result.drafted, result.accepted = totals.drafted, totals.accepted
        findings = self._counters(generator, found)
        if arithmetic != Arithmetic():
            findings += _other_bits(expected, found)
        if arithmetic.precision == "own":
            findings += self._other_output(found, result)
        return findings

    def _check_beam(self, mode: Mapping[str, Any], result: ModeResult) -> list[tuple[str, str]]:
        """Whole n-best lists against those of stock fairseq."""
        stock = self._stock(mode["beam"])
        try:
            expected = self._lists(stock, self.samples)
        except Exception:  # as where a forced prefix is empty: then there is nothing to compare with
            result.refused = len(self.reference)
            return []
        drafter = BlockDraftOptions(self._drafter(mode["drafter"]), mode["block_size"]) if "drafter" in mode else None
        generator = self._used(AggressiveBeamGenerator.of(
            self.models, self.target, src_dict=self.source, decoding="aggressive-beam", beam_size=mode["beam"],
            budget=mode.get("budget"), engines=self._engines.setdefault(Arithmetic(), Engines()), block_draft=drafter,
            **self._search_by_fairseq(),
        ))  # fmt: skip
        found = self._lists(generator, self.samples)
        totals = generator.totals
        result.sentences, result.tokens = len(found), totals.committed
        result.drafted, result.accepted = totals.drafted, totals.accepted
        gap = beam_gap_of(stock, self.models, self._alone, self._prefix)
        differing = differences(_joined(expected), _joined(found), gap)
        result.near_ties = sum(difference.near_tie for difference in differing)
        findings = [
            ("tokens", difference.describe("this", "fairseq", self.target.symbols))
            for difference in differing if not difference.near_tie
        ]  # fmt: skip
        for number in expected.keys() - {difference.sentence for difference in differing}:
            for ours, theirs in zip(found[number], expected[number], strict=True):
                size = float(theirs["positional_scores"].abs().sum())  # of the sums whose differences these are
                for name in ("positional_scores", "score"):
                    if not torch.allclose(ours[name], theirs[name].to(ours[name]), atol=_SCORES * (1 + size / 10)):
                        text = f"sentence {number}: {name} {ours[name].tolist()}, fairseq {theirs[name].tolist()}"
                        findings.append(("scores", text))
        return findings

    def _lists(
        self, generator: SequenceGenerator, samples: Sequence[dict[str, Any]]
    ) -> dict[int, list[dict[str, Any]]]:
        found: dict[int, list[dict[str, Any]]] = {}
        for sample in samples:
            hypotheses = generator.generate(self.models, sample, prefix_tokens=self._prefix(sample))
            found.update(zip(sample["id"].tolist(), hypotheses, strict=True))
        return found

    def _other_output(self, found: Hypotheses, result: ModeResult) -> list[tuple[str, str]]:
        """Differences from stock fairseq that rounding does not explain."""
        findings = []
        gap = gap_of(self.stock, self.models, self._alone)
        differing = differences(_tokens(self.reference), _tokens(found), gap)
        for difference in differing:
            if difference.near_tie:
                result.near_ties += 1
            else:
                findings.append(("tokens", difference.describe("this", "fairseq", self.target.symbols)))
        for number in self.reference.keys() - {difference.sentence for difference in differing}:
            for name in ("positional_scores", "score"):
                ours, theirs = found[number][name], self.reference[number][name]
                if not torch.allclose(ours, theirs.to(ours), atol=_SCORES, rtol=_SCORES):
                    text = f"sentence {number}: {name} {ours.tolist()} where fairseq has {theirs.tolist()}"
                    findings.append(("scores", text))
                    break
        return findings

    @staticmethod
    def _counters(generator: AggressiveGenerator, found: Hypotheses) -> list[tuple[str, str]]:
        totals = generator.totals
        tokens, steps = sum(h["tokens"].numel() for h in found.values()), sum(h["steps"] for h in found.values())
        right = totals.committed == tokens and totals.iterations == steps <= tokens
        if right and totals.accepted <= totals.drafted and totals.sentences == len(found):
            return []
        return [("counters", f"{totals} of {len(found)} sentences with {tokens} tokens, {steps} iterations")]

    def _decode(self, generator: SequenceGenerator, samples: Sequence[dict[str, Any]]) -> Hypotheses:
        return {number: best for number, (best,) in self._lists(generator, samples).items()}

    def _ours(
        self, mode: Mapping[str, Any], engines: Engines, answers: Mapping[int, Sequence[int]]
    ) -> AggressiveGenerator:
        block_draft = None
        if mode.get("block_size") and mode.get("drafts", "oracle") == "oracle":
            drafter = self._drafter(mode["drafter"]) if "drafter" in mode else None
            block_draft = BlockDraftOptions(drafter, mode["block_size"])
        options: dict[str, Any] = {
            "src_dict": self.source,
            "decoding": mode["decoding"],
            "block_draft": block_draft,
            "max_draft_len": mode.get("longest_copy", 0),
            "engines": engines,
            "drafts": "whole" if mode.get("whole") else "auto",
            **self._search_by_fairseq(),
        }
        if "drafts" not in mode:
            return AggressiveGenerator.of(self.models, self.target, **options)
        return FuzzedGenerator.of(
            self.models, self.target, adversary=mode["drafts"], answers=answers, seed=self.case.number,
            block_size=mode.get("block_size", 0), **options,
        )  # fmt: skip

    def _used(self, generator: AggressiveGenerator) -> AggressiveGenerator:
        """The generator, after it has decoded what `Case.used` says; the models are as they were."""
        if self.case.used == "inference mode":
            with torch.inference_mode():
                self._decode_and_forget(generator)
        elif self.case.used == "other weights":
            states = [{name: value.clone() for name, value in model.state_dict().items()} for model in self.models]
            with torch.no_grad():
                for model in self.models:
                    for weight in model.parameters():
                        weight.mul_(1.5)
            self._decode_and_forget(generator)
            for model, state in zip(self.models, states, strict=True):
                model.load_state_dict(state)
        generator.totals = type(generator.totals)()
        return generator

    def _decode_and_forget(self, generator: AggressiveGenerator) -> None:
        with suppress(Exception):  # such weights need not be able to decode
            self._lists(generator, self.samples[:1])

    def _search(self) -> dict[str, Any]:
        search = dict(self.case.search)
        search["tokens_to_suppress"] = tuple(search.get("tokens_to_suppress", ()))
        return search

    def _model(self, options: Mapping[str, Any], number: int) -> Any:
        options = {name: value for name, value in options.items() if name != "kind"}
        model = random_network(
            seed=1000 * self.case.number + number, src_dict=self.source, tgt_dict=self.target,
            eos_share=self.case.eos_share, **options,
        )  # fmt: skip
        if self.case.twins:
            twin_words(model, apart=self.case.twins == "apart")
        return model

    def _drafter(self, options: Mapping[str, Any]) -> LoadedDrafter:
        options = dict(options)
        shared = options.pop("shared", False)
        seed = 1000 * self.case.number + 100
        drafter = random_network("nar_drafter", seed, self.source, self.target, block_size=_TRAINED, **options)
        if shared:
            share_encoder(drafter, self.models[0])
        return LoadedDrafter(drafter)

    def _words(self, number: int, length: int, what: str, symbols: Any) -> list[int]:
        rng = Random(f"{self.case.number} {what} {number}")
        words = [rng.randrange(symbols.nspecial, len(symbols)) for _ in range(length)]
        return [rng.randrange(len(symbols)) if rng.random() < 0.03 else word for word in words]

    def _sample(self, batch: Sequence[Sequence[int]]) -> dict[str, Any]:
        pad, eos = self.source.pad(), self.source.eos()
        if self._sorted:
            batch = sorted(batch, key=lambda sentence: -sentence[1])
        rows = []
        width = 1 + max(length for _, length in batch)
        for number, length in batch:
            sentence = [word if word != pad else eos for word in self._words(number, length, "source", self.source)]
            padding = [pad] * (width - length - 1)
            rows.append([*padding, *sentence, eos] if self.case.left_pad else [*sentence, eos, *padding])
        return {
            "id": torch.tensor([number for number, _ in batch]),
            "net_input": {
                "src_tokens": torch.tensor(rows),
                "src_lengths": torch.tensor([length + 1 for _, length in batch]),
            },
        }

    @property
    def _sorted(self) -> bool:
        """Whether the longest sentence must come first, as fairseq's LSTM needs it."""
        return any(model["kind"] == "LSTM" for model in self.case.models)

    def _prefix(self, sample: Mapping[str, Any]) -> Tensor | None:
        """Forced tokens; some sentences have fewer, followed by EOS and padding."""
        if self.case.prefix == 0:
            return None
        pad, eos = self.target.pad(), self.target.eos()
        rows = []
        for number in sample["id"].tolist():
            words = self._words(number, self.case.prefix, "prefix", self.target)
            words = [word if word not in (pad, eos) else self.target.nspecial for word in words]
            if number % 5 == 4:
                words = [*words[: number % self.case.prefix], eos, *[pad] * self.case.prefix][: self.case.prefix]
            rows.append(words)
        return torch.tensor(rows)

    @cached_property
    def _alone(self) -> dict[int, dict[str, Any]]:
        """Each sentence by itself, padded as in its batch."""
        return {
            int(number): {
                "id": number[None], "net_input": {name: value[row, None] for name, value in sample["net_input"].items()}
            }
            for sample in self.samples
            for row, number in enumerate(sample["id"])
        }  # fmt: skip

    def _split(self, size: int) -> list[dict[str, Any]]:
        """The batches; if `size` is not 0, split into batches of `size` sentences in reverse order."""
        if size == 0 or self.case.search.get("max_len_a") or self.case.search.get("match_source_len"):
            return self.samples
        parts = []
        for batch in self.case.batches:
            backwards = batch[::-1]
            parts += [self._sample(backwards[start : start + size]) for start in range(0, len(batch), size)]
        return parts


def _tokens(hypotheses: Hypotheses) -> dict[int, list[int]]:
    return {number: hypothesis["tokens"].tolist() for number, hypothesis in hypotheses.items()}


def _joined(lists: Mapping[int, Sequence[dict[str, Any]]]) -> dict[int, list[int]]:
    """The tokens of all hypotheses of a list, one behind the other."""
    return {
        number: [token for one in hypotheses for token in one["tokens"].tolist()]
        for number, hypotheses in lists.items()
    }


def _other_bits(expected: Hypotheses, found: Hypotheses) -> list[tuple[str, str]]:
    """Sentences whose tokens or scores differ in any bit."""
    findings = []
    for number, hypothesis in expected.items():
        for name in ("tokens", "positional_scores", "score"):
            if not torch.equal(found[number][name], hypothesis[name]):
                text = f"sentence {number}: {name} {found[number][name].tolist()}, greedy {hypothesis[name].tolist()}"
                findings.append(("bits", text))
                break
    return findings
