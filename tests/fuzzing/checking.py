"""Decodes a case in all its modes and compares them with stock fairseq."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from random import Random
from typing import Any
from unittest import mock

import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.search import LengthConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_aggdec.compat.plain_attention import plain_attention
from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.native import library
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.modes import COPY_RULES
from fairseq_aggdec.lab.verify.differences import Decode, beam_gap_of, gap_of
from tests.fuzzing.cases import Case
from tests.support.oracle import OracleGenerator, compare, tokens_by_number
from tests.support.random_models import (
    dictionary,
    random_network,
    share_encoder,
    twin_words,
)

_TRAINED = 8
"""block size that drafters are made with"""

Lists = dict[int, list[dict[str, Any]]]
"""hypotheses, by sentence number"""


def check(case: Case) -> Counter[str]:
    """Compare each mode of a case with stock fairseq.

    Returns:
        The numbers of `decodings` and `sentences`, `near-ties`, decodings `refused` by stock fairseq or for a precision
        that is not there, and for each mode, kind of drafts and precision, tokens `drafted` and `accepted`.

    Raises:
        AssertionError: an output, a score or a counter is wrong.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(case.threads)
    try:
        with (
            mock.patch.object(
                library,
                "kernels",
                (lambda: None) if case.backend == "PyTorch" else library.kernels,
            ),
            mock.patch.dict(
                "os.environ",
                AGGDEC_BACKEND="graphs" if case.backend == "graphs" else "",
            ),
            mended_ngram_blocker() if case.block_ngrams else nullcontext(),
        ):
            return _Checker(case).check()
    finally:
        torch.set_num_threads(threads)


@contextmanager
def mended_ngram_blocker() -> Iterator[None]:
    """fairseq's own blocker is shown the output without the padding after it, in which it looks for n-grams, too."""
    broken = NGramRepeatBlock.forward

    def blocks(
        self: Any, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
    ) -> Tensor:
        return broken(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)

    with mock.patch.object(NGramRepeatBlock, "forward", blocks):
        yield


class _Checker:
    """The models, batches and reference outputs of a case, made when first needed."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.counts: Counter[str] = Counter()
        self._engines: dict[Arithmetic, Engines] = {}
        self.source = dictionary(case.words[0])
        self.target = (
            self.source if case.joined else dictionary(case.words[1], offset=3)
        )
        self.is_speech = case.kind == "speech"
        self.language = len(self.target) - 1
        self.eos = self.language if case.language == "EOS" else self.target.eos()
        self.models = [
            self._model(options, number) for number, options in enumerate(case.models)
        ]
        first = [
            sum(map(len, case.batches[:number])) for number in range(len(case.batches))
        ]
        self.batches = [
            list(enumerate(lengths, start))
            for start, lengths in zip(first, case.batches, strict=True)
        ]
        self.samples = [self._sample(batch) for batch in self.batches]

    @torch.no_grad()
    def check(self) -> Counter[str]:
        try:
            self.reference = self._lists(self._stock(1), self.samples)
        except Exception:
            # as where the model has too few positions: then there is nothing to compare with
            self.counts["refused"] += 1
            return self.counts
        for mode in self.case.modes:
            is_beam = mode["decoding"] == "aggressive-beam"
            found = self._check_beam(mode) if is_beam else self._check_mode(mode)
            if found is None:
                self.counts["refused"] += 1
                continue
            self.counts.update(decodings=1, sentences=found.sentences)
            exact = "exact" if "bit_exact" in mode else None
            place = (mode["decoding"], mode.get("drafts"), mode.get("precision"), exact)
            name = ", ".join(filter(None, place))
            self.counts.update(
                {f"{name}: drafted": found.drafted, f"{name}: accepted": found.accepted}
            )
        return self.counts

    def _check_mode(self, mode: Mapping[str, Any]) -> Any:
        """The generator's totals; None where this machine cannot compute in the mode's precision."""
        arithmetic = Arithmetic(
            mode.get("precision", "model"), mode.get("bit_exact", False)
        )
        expected = self.reference
        engines = self._engines.setdefault(arithmetic, Engines(arithmetic))
        if arithmetic != Arithmetic():
            try:
                expected = self._lists(
                    self._ours({"decoding": "greedy"}, engines, {}), self.samples
                )
            except AggdecError:
                return None
        generator = self._used(self._ours(mode, engines, tokens_by_number(expected)))
        samples = self._split(mode.get("split", 0))
        if mode["decoding"] == "iad" and (self.case.seed % 2 or self.is_speech):
            samples = [
                self._with_drafts(sample, tokens_by_number(expected))
                for sample in samples
            ]
        found = self._lists(generator, samples)
        totals = generator.totals
        best = [hypothesis for (hypothesis,) in found.values()]
        tokens = sum(one["tokens"].numel() for one in best)
        steps = sum(one["steps"] for one in best)
        counted = (totals.sentences, totals.committed, totals.iterations)
        assert counted == (len(found), tokens, steps), (
            f"{totals}: not {len(found)} sentences, {tokens} tokens, {steps}"
        )
        assert totals.accepted <= totals.drafted, totals
        assert steps <= tokens, totals
        if arithmetic != Arithmetic():
            for number, (theirs,) in expected.items():
                for name in ("tokens", "positional_scores", "score"):
                    same = torch.equal(found[number][0][name], theirs[name])
                    assert same, (
                        f"sentence {number}: {name} {found[number][0][name]}, greedy {theirs[name]}"
                    )
        if arithmetic.precision == "model":
            gap = gap_of(self._decode(self._stock(1)), self._alone)
            self.counts["near-ties"] += compare(
                self.reference, found, gap, self.target.symbols
            )
        return totals

    def _check_beam(self, mode: Mapping[str, Any]) -> Any:
        """As `_check_mode`, with whole n-best lists; None where stock fairseq or --block-ngrams cannot search."""
        try:
            expected = self._lists(self._stock(mode["beam"]), self.samples)
        except Exception:  # as where a forced prefix is empty
            return None
        generator = self._used(AggressiveBeamGenerator.of(
            self.models, self.target, src_dict=None if self.is_speech else self.source, decoding="aggressive-beam",
            beam_size=mode["beam"], budget=mode.get("budget"),
            engines=self._engines.setdefault(Arithmetic(), Engines()), block_ngrams=self.case.block_ngrams,
            **self._search(),
        ))  # fmt: skip
        try:
            found = self._lists(generator, self.samples)
        except AggdecError as refusal:
            if "--block-ngrams needs this plugin's engine" not in str(refusal):
                raise
            return None
        stock = self._stock(mode["beam"])
        decoded = self._alone
        # a short sentence alone would be searched for fewer steps
        if self.case.search.get("match_source_len"):
            decoded = {
                number: sample
                for sample in self.samples
                for number in sample["id"].tolist()
            }
        gap = beam_gap_of(self._decode(stock), decoded, stock.search)
        self.counts["near-ties"] += compare(expected, found, gap, self.target.symbols)
        return generator.totals

    def _decode(self, generator: SequenceGenerator) -> Decode:
        def decode(sample: dict[str, Any], prefix: Tensor | None) -> Any:
            prefix = self._prefix(sample) if prefix is None else prefix
            first = self.language if self.case.language == "first token" else None
            # fairseq's own generator of one beam fails over a BART that another has searched with a beam
            is_greedy = (
                type(generator) is SequenceGenerator and generator.beam_size == 1
            )
            with plain_attention(self.models) if is_greedy else nullcontext():
                return generator.generate(
                    self.models, sample, prefix_tokens=prefix, bos_token=first
                )

        return decode

    def _lists(
        self, generator: SequenceGenerator, samples: Sequence[dict[str, Any]]
    ) -> Lists:
        found: Lists = {}
        for sample in samples:
            hypotheses = self._decode(generator)(sample, None)
            found.update(zip(sample["id"].tolist(), hypotheses, strict=True))
        return found

    def _stock(self, beam: int) -> SequenceGenerator:
        return SequenceGenerator(
            self.models, self.target, beam_size=beam, **self._search()
        )

    def _search(self) -> dict[str, Any]:
        """The options, with the strategy that fairseq's task adds."""
        search = dict(self.case.search)
        if search.get("match_source_len"):
            search["search_strategy"] = LengthConstrainedBeamSearch(
                self.target, 1, 0, 1, 0
            )
        return {"tokens_to_suppress": (), "eos": self.eos, **search}

    def _ours(
        self,
        mode: Mapping[str, Any],
        engines: Engines,
        answers: Mapping[int, Sequence[int]],
    ) -> AggressiveGenerator:
        block_draft = None
        if mode.get("block_size") and mode.get("drafts", "oracle") == "oracle":
            drafter = self._drafter(mode["drafter"]) if "drafter" in mode else None
            block_draft = BlockDraftOptions(drafter, mode["block_size"])
        options: Any = {
            "src_dict": None if self.is_speech else self.source,
            "decoding": mode["decoding"],
            "block_draft": block_draft,
            "max_draft_len": mode.get("longest_copy", 0),
            "copies": mode.get("copies", COPY_RULES[0]),
            "engines": engines,
            "drafts": "whole" if mode.get("whole") else "auto",
            "block_ngrams": self.case.block_ngrams,
            "keep_drafts": False,
            **self._search(),
        }
        if "drafts" not in mode:
            return AggressiveGenerator.of(self.models, self.target, **options)
        return OracleGenerator.of(
            self.models, self.target, adversary=mode["drafts"], answers=answers, seed=self.case.seed,
            longest=mode.get("block_size", 0), **options,
        )  # fmt: skip

    def _used(self, generator: AggressiveGenerator) -> AggressiveGenerator:
        """The generator, after it has decoded what `Case.used` says; the models are as they were."""
        if self.case.used == "a beam":
            # of two beams of different sizes over a BART, fairseq's own fail
            self._stock(max(2, generator.beam_size))
        elif self.case.used == "inference mode":
            with torch.inference_mode(), suppress(Exception):
                self._lists(generator, self.samples[:1])
        elif self.case.used == "other weights":
            states = [
                {name: value.clone() for name, value in model.state_dict().items()}
                for model in self.models
            ]
            for weight in (
                weight for model in self.models for weight in model.parameters()
            ):
                weight.mul_(1.5)
            with suppress(Exception):  # such weights need not be able to decode
                self._lists(generator, self.samples[:1])
            for model, state in zip(self.models, states, strict=True):
                model.load_state_dict(state)
        generator.totals = type(generator.totals)()
        return generator

    def _model(self, options: Mapping[str, Any], number: int) -> Any:
        options = {name: value for name, value in options.items() if name != "kind"}
        model = random_network(
            seed=1000 * self.case.seed + number, src_dict=self.source, tgt_dict=self.target,
            eos_share=self.case.eos_share, eos=self.eos, **options,
        )  # fmt: skip
        if self.case.twins:
            twin_words(model, apart=self.case.twins == "apart")
        return model

    def _drafter(self, options: Mapping[str, Any]) -> LoadedDrafter:
        options = dict(options)
        shared = options.pop("shared", False)
        seed = 1000 * self.case.seed + 100
        if options.get("kind") == "alike":
            model = self._model(self.case.models[0], 0)
            torch.manual_seed(seed)
            for weight in model.decoder.parameters():
                weight += 0.02 * torch.randn_like(weight)
            return LoadedDrafter(model)
        if "kind" in options:
            return LoadedDrafter(self._model(options, 100))
        drafter = random_network(
            "nar_drafter",
            seed,
            self.source,
            self.target,
            block_size=_TRAINED,
            **options,
        )
        if shared:
            share_encoder(drafter, self.models[0])
        return LoadedDrafter(drafter)

    def _words(self, number: int, length: int, what: str, symbols: Any) -> list[int]:
        rng = Random(f"{self.case.seed} {what} {number}")
        words = [rng.randrange(symbols.nspecial, len(symbols)) for _ in range(length)]
        return [
            rng.randrange(len(symbols)) if rng.random() < 0.03 else word
            for word in words
        ]

    def _sample(self, batch: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """A batch of sentences, given by number and length."""
        pad = self.source.pad()
        eos = self.source.eos()
        # fairseq's needs the longest sentence first
        if any(model["kind"] == "LSTM" for model in self.case.models):
            batch = sorted(batch, key=lambda sentence: -sentence[1])
        rows = []
        width = 1 + max(length for _, length in batch)
        for number, length in batch:
            sentence = [
                word if word != pad else eos
                for word in self._words(number, length, "source", self.source)
            ]
            padding = [pad] * (width - length - 1)
            rows.append(
                [*padding, *sentence, eos]
                if self.case.left_pad and not self.is_speech
                else [*sentence, eos, *padding]
            )
        tokens = torch.tensor(rows)
        lengths = torch.tensor([length + 1 for _, length in batch])
        if self.is_speech:  # two frames a word, and zeros after the last one
            frames = torch.randn(
                len(self.source),
                16,
                generator=torch.Generator().manual_seed(self.case.seed),
            )
            tokens = (frames[tokens] * tokens.ne(pad)[..., None]).view(
                len(rows), 2 * width, 8
            )
            lengths = 2 * lengths
        return {
            "id": torch.tensor([number for number, _ in batch]),
            "net_input": {"src_tokens": tokens, "src_lengths": lengths},
        }

    def _prefix(self, sample: Mapping[str, Any]) -> Tensor | None:
        """Forced tokens; some sentences have fewer, followed by EOS and padding. A language's token is the first."""
        language = [self.language] if self.case.language == "prefix" else []
        if self.case.prefix == 0:
            return torch.tensor([language] * len(sample["id"])) if language else None
        pad = self.target.pad()
        eos = self.eos
        rows = []
        for number in sample["id"].tolist():
            words = self._words(number, self.case.prefix, "prefix", self.target)
            words = [
                word if word not in (pad, eos) else self.target.nspecial
                for word in words
            ]
            if number % 5 == 4:
                words = [
                    *words[: number % self.case.prefix],
                    eos,
                    *[pad] * self.case.prefix,
                ][: self.case.prefix]
            rows.append([*language, *words])
        return torch.tensor(rows)

    def _with_drafts(
        self, sample: dict[str, Any], answers: Mapping[int, Sequence[int]]
    ) -> dict[str, Any]:
        """A sample with drafts of one's own: one in three is empty, the others are the output with random errors."""
        drafts = []
        for number in sample["id"].tolist():
            rng = Random(f"{self.case.seed} {number}")
            words = range(-1, len(self.target))  # FOREIGN and special symbols, too
            drafts.append(
                [
                    rng.choice(words) if rng.random() < 0.2 else token
                    for token in answers[number][:-1]
                ]
            )
        return {
            **sample,
            "drafts": [
                draft if place % 3 else [] for place, draft in enumerate(drafts)
            ],
        }

    @cached_property
    def _alone(self) -> dict[int, dict[str, Any]]:
        """Each sentence by itself, padded as in its batch; speech is not, since fairseq's encoder would fail."""
        alone = {}
        for sample in self.samples:
            source, lengths = sample["net_input"].values()
            for row, number in enumerate(sample["id"]):
                width = lengths[row] if self.is_speech else source.size(1)
                net_input = {
                    "src_tokens": source[row, None, :width],
                    "src_lengths": lengths[row, None],
                }
                alone[int(number)] = {"id": number[None], "net_input": net_input}
        return alone

    def _split(self, size: int) -> list[dict[str, Any]]:
        """The batches; if `size` is not 0, split into batches of `size` sentences in reverse order."""
        if (
            size == 0
            or self.is_speech
            or self.case.search.get("max_len_a")
            or self.case.search.get("match_source_len")
        ):
            return self.samples
        backwards = [batch[::-1] for batch in self.batches]
        return [
            self._sample(batch[start : start + size])
            for batch in backwards
            for start in range(0, len(batch), size)
        ]
