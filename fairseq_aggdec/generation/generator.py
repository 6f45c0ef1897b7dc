"""The generator that runs the decoding loop: fairseq's samples in, fairseq's hypotheses out."""

import logging
import math
import time
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from inspect import signature
from itertools import chain
from typing import Any, Self

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.search import BeamSearch, LengthConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_aggdec.decoding.drafters.input_guided import Form
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.drafters.unverified import decode_unverified
from fairseq_aggdec.decoding.loop import draft_verify_accept
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.stats import DecodingTotals
from fairseq_aggdec.decoding.tokens import Decoded, flat
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.choose_backend import choose_backend, on_device, weight_of
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.ensemble import EnsembleVerifier
from fairseq_aggdec.engine.loops.ask import DeviceLoop, device_loop
from fairseq_aggdec.engine.loops.rows import RowSearch
from fairseq_aggdec.engine.model_locks import alone_with
from fairseq_aggdec.engine.plain.choice import Choice
from fairseq_aggdec.engine.plain_attention import plain_attention
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from fairseq_aggdec.engine.supported_models import has_own_probabilities, unsupported_decoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import Batch, BlockDraftOptions, Drafting
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.generation.stats_file import StatsFile
from fairseq_aggdec.process import shorten_waits

logger = logging.getLogger(__name__)

_FAIRSEQ_ARGUMENTS = signature(SequenceGenerator.__init__).parameters

ModelVerifier = Decoder | RecomputeVerifier

NAN_SCORES = (
    "scores are NaN: in half precision (--fp16) a model may overflow, so decode in --bf16 or in single precision; "
    "otherwise its training has diverged"
)


class AggressiveGenerator(SequenceGenerator):
    """Drop-in for fairseq's generator at beam 1: same samples in, same hypotheses out, fewer decoder passes.

    Lossless modes return fairseq's tokens and scores. `gad++` and `iad++` accept near misses and may differ; `nar`
    returns the drafter's output unverified.

    Beside fairseq's entries a hypothesis has `stats`, its `SentenceStats`, `steps`, the number of iterations, and
    `history`, the draft of each iteration; fairseq-generate prints the latter under `--print-step` and
    `--retain-iter-history`. `attention` is empty. Only one thread decodes at a time.
    """

    def __init__(
        self,
        stock: SequenceGenerator,
        decoding: Decoding,
        src_dict: Dictionary | None,
        *,
        block_draft: BlockDraftOptions | None = None,
        keep_drafts: bool = True,
        stats_file: StatsFile | None = None,
        engines: Engines | None = None,
        form: Form | None = None,
    ) -> None:
        """Take the models and all search options from `stock`, the generator that fairseq's task built.

        `decoding` is in a mode that stands for no other; `src_dict`: None where the source is no text; `block_draft`:
        None: no model drafts; `keep_drafts`: fill `history` of the hypotheses; `engines`: to be shared by generators;
        `form`: of sources, of which the text alone is copied.

        Raises `AggdecError` where `stock` is of another type, or has an option that the mode cannot honour.
        """
        mode = decoding.row
        if type(stock) is not SequenceGenerator:
            raise AggdecError(
                f"{type(stock).__name__}: --decoding {mode.name} replaces fairseq's SequenceGenerator alone; "
                "use --decoding beam"
            )
        if stock.beam_size != 1 and not mode.has_beam:
            raise AggdecError(f"--decoding {mode.name} has a beam of one, and not of {stock.beam_size}")
        torch.nn.Module.__init__(self)
        self.__dict__.update(stock.__dict__)
        self.decoding = decoding
        self.mode = mode
        self.src_dict = src_dict
        self.block_draft = block_draft
        self._keep_drafts = keep_drafts
        self._stats_file = stats_file
        self.totals = DecodingTotals()
        self._members = list(self.model.models)
        self._engines = engines or Engines()
        self._said_fallback = False
        self._device = torch.device("cpu")  # of the batch
        self._source_ends: list[int] = []  # with `match_source_len`, the lengths of the batch's sources
        self._check_search()
        self.no_repeat_ngram_size = self._effective_ngram_size()
        self._check_members()
        self._drafting = Drafting(
            self._members, decoding, src_dict, self.tgt_dict, self.eos, block_draft, self._engines, form
        )

    @classmethod
    def of(
        cls,
        models: list[FairseqEncoderDecoderModel],
        tgt_dict: Dictionary,
        *,
        src_dict: Dictionary | None,
        decoding: str,
        **options: Any,
    ) -> Self:
        """Build a generator without a task.

        Args:
            models: the verifier, or an ensemble of verifiers.
            decoding: the name of a mode.
            options: arguments of fairseq's `SequenceGenerator`, fields of `Decoding`, arguments of this class.
        """
        of_fairseq, others = split_options(options)
        of_decoding, own = split_options(others, [option.name for option in fields(Decoding)])
        how = Decoding(decoding, **of_decoding)
        if not how.row.has_beam:
            of_fairseq["beam_size"] = 1
        with alone_with(getattr(models, "models", models)):  # of fairseq's ensemble
            stock = SequenceGenerator(models, tgt_dict, **of_fairseq)
        return cls(stock, how, src_dict, **own)

    def __prepare_scriptable__(self) -> None:
        """What `torch.jit.script` calls first."""
        raise AggdecError(f"TorchScript cannot compile --decoding {self.mode.name}: export fairseq's own generator")

    def _check_members(self) -> None:
        """Refuse models that this plugin's engine would compute differently."""
        if len({id(model.decoder) for model in self._members}) < len(self._members):
            raise AggdecError("an ensemble has the same decoder twice: give it once, or a copy of it")
        for model in self._members:
            if unsupported_decoder(model.decoder) is not None:
                continue
            symbols = getattr(model.decoder.output_projection, "out_features", self.vocab_size)
            if symbols != self.vocab_size:
                raise AggdecError(f"the model has {symbols} output symbols, and its dictionary {self.vocab_size}")
            if has_own_probabilities(model):
                raise AggdecError(
                    f"{type(model).__name__} makes probabilities by a get_normalized_probs of its own, which this "
                    "plugin's engine does not call: decode with --decoding beam"
                )

    def _check_search(self) -> None:
        """Refuse a language model, and search strategies other than those of fairseq's translation task."""
        if self.lm_model is not None:
            raise AggdecError(f"--decoding {self.mode.name} cannot honour a language model; use --decoding beam")
        found, expected = self.search, "BeamSearch"
        is_known = type(found) is BeamSearch
        if self.match_source_len:
            expected = "LengthConstrainedBeamSearch(tgt_dict, 1, 0, 1, 0) with its EOS, because of match_source_len"
            is_known = type(found) is LengthConstrainedBeamSearch
            if is_known:
                bounds = (found.min_len_a, found.min_len_b, found.max_len_a, found.max_len_b)
                is_known = bounds == (1, 0, 1, 0) and found.eos == self.eos  # fairseq's would hold back another symbol
        if not is_known:
            raise AggdecError(f"search_strategy {type(found).__name__}: the plugin's modes have {expected}, only")

    def _effective_ngram_size(self) -> int:
        """The n-gram size in force; 0 where fairseq's n-gram blocker does not work and `block_ngrams` is not set.

        Without its CUDA extension fairseq's blocker compares padding and bans nothing.
        """
        blocker = self.repeat_ngram_blocker
        if blocker is None:
            return 0
        size: int = blocker.no_repeat_ngram_size
        if self.decoding.block_ngrams or blocker.use_extension:
            return size
        logger.warning(
            f"--no-repeat-ngram-size {size} has no effect here, as in fairseq's own search, whose n-gram blocker "
            "needs its CUDA extension; add --block-ngrams to have repeated n-grams banned"
        )
        return 0

    def _generate(
        self,
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Any]]]:
        if constraints is not None:
            raise AggdecError(f"--constraints cannot be combined with --decoding {self.mode.name}; use --decoding beam")
        if "src_tokens" not in sample["net_input"]:
            raise AggdecError(
                f"--decoding {self.mode.name} reads src_tokens, and samples have {', '.join(sample['net_input'])}: use "
                "--decoding beam"
            )
        drafter = None if self.block_draft is None else self.block_draft.drafter
        own_device = on_device(sample["net_input"]["src_tokens"].device)
        drafters = nullcontext() if drafter is None else drafter.batch()
        with self._engines.batch(), drafters, own_device, plain_attention(self._members):
            return self._decode_batch(sample, prefix_tokens, bos_token)

    def _decode_batch(
        self, sample: dict[str, Any], prefix_tokens: Tensor | None, bos_token: int | None
    ) -> list[list[dict[str, Any]]]:
        """The n-best list of hypotheses of each sentence."""
        began = time.perf_counter()
        if list(self.model.models) != self._members:
            raise AggdecError("the generator's models were replaced: make a new generator for others")
        net_input = sample["net_input"]
        source = net_input["src_tokens"]
        self._device = source.device
        if torch.is_autocast_enabled(source.device.type):
            raise AggdecError(
                f"--decoding {self.mode.name} does not follow torch.autocast: decode outside of it, with the precision "
                "of the model's weights (--fp16, --bf16, or model.half())"
            )
        start = self.eos if bos_token is None else bos_token
        # on the host, which would wait for the encoder to read them
        first_tokens = flat([[start] * source.size(0)])
        decoded = self._decode(sample, prefix_tokens, first_tokens, start)
        if not self._were_current():
            decoded = self._decode(sample, prefix_tokens, first_tokens, start)
        seconds = time.perf_counter() - began
        hypotheses = self._hypotheses(sample, decoded)
        self._record(sample, [best for best, *_ in decoded], seconds)
        return hypotheses

    def _decode(
        self, sample: dict[str, Any], prefix_tokens: Tensor | None, first_tokens: Tensor, start: int
    ) -> Sequence[Sequence[Decoded]]:
        """The n-best list of each sentence; `first_tokens`, B, on the host, has the symbol `start` in every row."""
        net_input = sample["net_input"]
        if not self.mode.verifies:
            return [[sentence] for sentence in self._decode_unverified(net_input, prefix_tokens, first_tokens)]
        seen = net_input
        if self.mode.copies:  # later the host would wait for the encoder
            seen = {**net_input, "src_tokens": net_input["src_tokens"].cpu()}
        encoder_outs = [self._engines.encode(model, net_input) for model in self.model.models]
        rules, device = self._rules(net_input, prefix_tokens), net_input["src_tokens"].device
        batch = Batch(seen, encoder_outs, sample.get("drafts", ()))
        drafter = self.make_drafter(batch)
        accept, schedule = self._drafting.accept, self._drafting.schedule(net_input["src_tokens"])
        on_device = self._device_loop(rules, RowSearch(drafter, accept, schedule, self._keep_drafts))
        if on_device is not None:
            looped = on_device(self._make_verifier(encoder_outs), first_tokens)
            if looped is not None:
                return [[sentence] for sentence in looped]
            drafter = self.make_drafter(batch)  # the loop may have begun with the other one
        # a draft token that overflows in half precision spoils its whole block, since hidden tokens have weight zero,
        # and zero times infinity is NaN. Without drafts only chosen tokens are read, as in fairseq
        for one in (drafter, NoDrafter()):
            decoded = draft_verify_accept(
                one,
                self._make_verifier(encoder_outs),
                rules,
                first_tokens,
                accept=accept,
                schedule=schedule,
                keep_drafts=self._keep_drafts,
                device=device,
            )
            if not any(map(math.isnan, chain.from_iterable(sentence.log_probs for sentence in decoded))):
                break
        return [[sentence] for sentence in decoded]

    def _were_current(self) -> bool:
        """Whether all engines of this batch have the models' present weights, see `Engines.were_current`."""
        drafter = None if self.block_draft is None else self.block_draft.drafter
        return all([self._engines.were_current(), drafter is None or drafter.were_current()])

    def _rules(self, net_input: dict[str, Any], prefix_tokens: Tensor | None) -> SearchRules:
        source = net_input["src_tokens"]
        source_lengths = None
        if self.match_source_len:
            source_lengths = self._source_lengths(net_input)
            self._source_ends = source_lengths.tolist()
            max_len = max(self._source_ends)
        else:
            max_len = min(int(self.max_len_a * source.size(1) + self.max_len_b), self.max_len - 1)
        if self.min_len > max_len:
            raise AggdecError(
                f"--min-len {self.min_len} is above the longest output allowed here, {max_len} tokens "
                "(--max-len-a, --max-len-b and the model's positions): lower it or raise them"
            )
        suppressed = self.token_indices_to_suppress
        return SearchRules(
            pad=self.pad,
            unk=self.unk,
            eos=self.eos,
            max_len=max_len,
            symbols=self.vocab_size,
            min_len=self.min_len,
            unk_penalty=self.unk_penalty,
            no_repeat_ngram_size=self.no_repeat_ngram_size,
            suppressed=() if suppressed is None else tuple(suppressed.tolist()),
            prefix=prefix_tokens,
            source_lengths=source_lengths,
        )

    def _source_lengths(self, net_input: dict[str, Any]) -> Tensor:
        """The length of each source as fairseq counts it, B."""
        if "src_lengths" in net_input:
            return net_input["src_lengths"]
        source = net_input["src_tokens"]
        return (source.ne(self.eos) & source.ne(self.pad)).long().sum(dim=1)

    def make_drafter(self, batch: Batch) -> Drafter:
        """The drafter of a batch; subclasses may return another."""
        return self._drafting.make_drafter(batch)

    def _decode_unverified(
        self, net_input: dict[str, Any], prefix_tokens: Tensor | None, first_tokens: Tensor
    ) -> list[Decoded]:
        assert self.block_draft is not None
        assert self.block_draft.drafter is not None
        loaded = self.block_draft.drafter
        dtype = next(self.model.models[0].parameters()).dtype
        model = loaded.start(net_input, dtype, arithmetic=self._engines.arithmetic)
        rules = self._rules(net_input, prefix_tokens)
        rules = replace(
            rules,
            max_len=min(rules.max_len, model.max_positions - 1),
            suppressed=(*rules.suppressed, *loaded.model.decoder.never_drafted),
        )
        size, device = self.block_draft.block_size, net_input["src_tokens"].device
        return decode_unverified(model, size, rules, first_tokens, self._keep_drafts, self.temperature, device)

    def _make_verifier(self, encoder_outs: list[dict[str, Any]]) -> ModelVerifier | EnsembleVerifier:
        """The verifier or the ensemble, ready to score this batch."""
        verifiers = [self._verifier_of(model) for model in self.model.models]
        shorten_waits(all(isinstance(own, Decoder) and own.backend.has_own_threads for own in verifiers))
        for verifier, encoder_out in zip(verifiers, encoder_outs, strict=True):
            verifier.start(encoder_out, self.temperature)
        return verifiers[0] if len(verifiers) == 1 else EnsembleVerifier(verifiers, self._choice())

    def _verifier_of(self, model: FairseqEncoderDecoderModel) -> ModelVerifier:
        # not in __init__: fairseq moves models to their device and precision later
        engine = self._engines.decoder(model.decoder)
        if engine is not None:
            return engine
        if not self._said_fallback:
            self._said_fallback = True
            reason = self._engines.unsupported(model.decoder)
            logger.warning(
                "fairseq's own code decodes, slower and as exact, because this plugin's engine does not support "
                f"{reason}"
            )
        return RecomputeVerifier(model, self.pad, self._choice())

    def _device_loop(self, rules: SearchRules, search: Any) -> DeviceLoop | None:
        """See `engine.loops`, which is asked here alone."""
        return device_loop(map(self._verifier_of, self.model.models), rules, search)

    def _choice(self) -> Choice:
        """The choice over scores that no single engine computes."""
        return choose_backend(weight_of(self.model.models[0], self._device), AS_THE_MODEL).choice

    def _hypotheses(self, sample: dict[str, Any], decoded: Sequence[Sequence[Decoded]]) -> list[list[dict[str, Any]]]:
        """fairseq's n-best lists, on the models' device; the host does not wait for them to arrive there.

        Raises `AggdecError` where a score is NaN.
        """
        sentences = list(chain.from_iterable(decoded))
        rows = [row for row, n_best in enumerate(decoded) for _ in n_best]
        lengths = [len(sentence.tokens) for sentence in sentences]
        sizes = [*lengths, len(lengths)]  # log-probabilities, then the scores
        numbers = flat([*(sentence.log_probs for sentence in sentences), [0.0] * len(lengths)], "f")
        *log_probs, room = numbers.split_with_sizes(sizes)
        scores = self._scores(sentences, log_probs)
        self._refuse_nan(sample, rows, scores)
        if self.match_source_len:  # an unknown token with a negative penalty can beat even a forced EOS
            found = zip(rows, lengths, scores, strict=True)
            scores = [-math.inf if length - 1 > self._source_ends[row] else score for row, length, score in found]
        room.numpy()[:] = scores
        # two copies to a GPU and not one, since torch.save refuses tensors of two types in one memory
        device = sample["net_input"]["src_tokens"].device
        tokens = flat(sentence.tokens for sentence in sentences).to(device, non_blocking=True)
        moved = numbers.to(device, non_blocking=True)
        if moved is not numbers:
            *log_probs, room = moved.split_with_sizes(sizes)
        hypotheses = map(_hypothesis, sentences, tokens.split_with_sizes(lengths), log_probs, room.unbind())
        return [[next(hypotheses) for _ in n_best] for n_best in decoded]

    def _scores(self, sentences: Sequence[Decoded], log_probs: Sequence[Tensor]) -> Sequence[float]:
        """The sum of each sentence's log-probabilities, normalised by length where fairseq's options say so."""
        sums = [float(own.sum()) for own in log_probs]
        powers = [len(own) ** self.len_penalty if self.normalize_scores else 1.0 for own in log_probs]
        return list(np.divide(sums, powers, dtype=np.float32, casting="same_kind"))

    def _refuse_nan(self, sample: dict[str, Any], rows: Sequence[int], scores: Sequence[float]) -> None:
        """Raise `AggdecError` where the score of a row is NaN; fairseq's own search fails there, too."""
        for row, score in zip(rows, scores, strict=True):
            if math.isnan(score):
                number = int(sample["id"][row]) if "id" in sample else row
                raise AggdecError(f"sentence {number}: its {NAN_SCORES}")

    def _record(self, sample: dict[str, Any], decoded: list[Decoded], seconds: float) -> None:
        first = self.totals.sentences
        for sentence in decoded:
            self.totals.add(sentence.stats)
        if self._stats_file is None:
            return
        source = sample["net_input"]["src_tokens"].cpu()
        ids = sample["id"].tolist() if "id" in sample else range(first, first + len(decoded))
        sources: Sequence[Any] = self._source_lengths(sample["net_input"]).tolist()
        if self.src_dict is not None:
            sources = [aligned[:-1] for aligned in self._drafting.align(source)]
        for row, (number, sentence) in enumerate(zip(ids, decoded, strict=True)):
            self._stats_file.write(
                sentence_id=int(number),
                source=sources[row],
                output=sentence.tokens[:-1],
                stats=sentence.stats,
                seconds=seconds if len(decoded) == 1 else None,
                text=self._text(source[row], sentence),
            )

    def _text(self, source: Tensor, sentence: Decoded) -> dict[str, Any] | None:
        """A sentence in symbols, for the statistics (`source`: S, may be padded); None where drafts are not kept."""
        if sentence.drafts is None:
            return None
        words, symbols = self.src_dict, self.tgt_dict.symbols
        hidden = () if words is None else (words.pad(), words.eos())
        return {
            "source": [] if words is None else [words[token] for token in source.tolist() if token not in hidden],
            "output": [symbols[token] for token in sentence.tokens],
            "drafts": [[symbols[token] for token in draft.tolist()] for draft in sentence.drafts],
        }


def _hypothesis(sentence: Decoded, tokens: Tensor, log_probs: Tensor, score: Tensor) -> dict[str, Any]:
    none = torch.empty(0)
    return {
        "tokens": tokens,
        "score": score,
        "attention": none,
        "alignment": none,
        "positional_scores": log_probs,
        "steps": sentence.stats.iterations,
        "history": [{"tokens": draft} for draft in sentence.drafts or []],
        "stats": sentence.stats,
    }


def split_options(
    options: dict[str, Any], names: Collection[str] = _FAIRSEQ_ARGUMENTS
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into those of these names, by default of fairseq's `SequenceGenerator`, and others."""
    chosen = {name: value for name, value in options.items() if name in names}
    return chosen, {name: value for name, value in options.items() if name not in names}
