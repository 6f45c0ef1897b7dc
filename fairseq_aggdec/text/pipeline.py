"""From a text to the inputs of a model, and from its outputs to a text; `fairseq_aggdec.model` decodes between them."""

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from fairseq.data import Dictionary
from torch import Tensor

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.settings import Settings
from fairseq_aggdec.text.degenerate import degenerated
from fairseq_aggdec.text.edits import edits_of, result_of
from fairseq_aggdec.text.encoders import Encoders, missing_subwords, mostly_unknown
from fairseq_aggdec.text.line import WrittenLine
from fairseq_aggdec.text.results import Hypothesis, Result, Sentence
from fairseq_aggdec.text.sentences import Span, cut_at_clauses, split_text
from fairseq_aggdec.text.spacing import match_spacing
from fairseq_aggdec.text.tokenizer import AsWrittenTokenizer

logger = logging.getLogger(__name__)

_LINE = re.compile(r"\S(.*\S)?")
_WHOLE = re.compile(r"\S(.*\S)?", re.DOTALL)
_TAG = re.compile(r"^[^\S\n]*(>>[^\s<>]+<<)", re.MULTILINE)
"""the target language with which a line begins"""

_SUBWORD = re.compile("@@(?!\\S)|(?<!\\S)\u2581")
"""a mark of subword-nmt or of SentencePiece"""

Outputs = dict[tuple[str, str], list[dict[str, Any]]]
"""fairseq's hypotheses of each `Part.key`, best first"""


@dataclass
class Part:
    """A sentence of a text, or a part of one that is too long: an input of the model."""

    source: str
    start: int
    """where it begins in the text, in characters"""
    read: str
    """what the model reads: the source, after its target language where the model wants that"""
    draft: str
    """a guess of the output, in subwords; "" for none"""
    tokens: Tensor
    """dictionary indices of what is read, EOS included"""
    note: str | None
    """why the source cannot be decoded; None: it can"""

    @property
    def is_decoded(self) -> bool:
        """Whether there is anything that can be decoded."""
        return self.note is None and len(self.tokens) > 1

    @property
    def key(self) -> tuple[str, str]:
        """What its output depends on."""
        return self.read, self.draft


@dataclass(kw_only=True, eq=False)
class TextPipeline:
    """How texts become inputs of a model, and its outputs texts."""

    task: Any
    """fairseq's, with dictionaries and languages"""
    encoders: Encoders
    tags: Settings | None
    """the imported model's settings where each text begins with its target language"""
    corrects: bool
    """whether an output is a correction of its source"""
    splits: bool
    """whether a line can hold several sentences"""
    longest: int
    """the most subwords of a sentence, EOS included"""
    hidden: Collection[int] | None = None
    """target symbols that are no part of a text: languages"""

    def __post_init__(self) -> None:
        # no subwords are named, and the warning for it is not yet logged
        self._may_lack_subwords = self.encoders.bpe is None
        self.source_dictionary: Dictionary = self.task.source_dictionary
        self.source_lang: str = self.task.languages[0]
        self.target_lang: str | None = None if self.tags else self.task.languages[1]
        if escapes := self.encoders.unknown_escapes(self.source_dictionary):
            logger.warning(
                f"the tokenizer writes {', '.join(escapes)}, which the model has not learnt: moses_no_escape "
                "(--moses-no-escape) leaves that out"
            )

    def encode(self, sentence: str) -> Tensor:
        """The dictionary indices of one sentence, EOS included."""
        subwords = self.encoders.encode(sentence)
        return self.source_dictionary.encode_line(
            subwords, add_if_not_exist=False
        ).long()

    def tag(self, text: str, before: str = "") -> str:
        """The target language that a text begins with, such as `>>deu<<`, or else `before`, that of the text before it.

        "" where it was given when the model was loaded, or the model has but one.

        Raises:
            AggdecError: the text names no language, or one that the model does not have.
        """
        if self.tags is None:
            return ""
        found = _TAG.match(text)
        tag = found[1] if found else before
        named = f"'{text[:60]}'"
        if not tag:
            example = next(iter(self.tags.languages.values()))
            raise AggdecError(
                f"{named}: {self.tags.needs('-t')}, or begin the text with one: {example} ..."
            )
        self.tags.check_language(named, tag.strip("<>"))
        return tag

    def parts(
        self, text: str, draft: str | None = None, whole: bool = False
    ) -> list[Part]:
        """The inputs of a text, with their drafts; a sentence that is too long is cut at clauses.

        Args:
            text: any number of lines and sentences.
            draft: a guess of the whole output.
            whole: the text is one input.
        """
        spans = self._spans(text, self.source_lang, whole)
        # sentences of text and draft are counterparts if they are as many; else each finds its part in the whole draft
        drafts = [] if draft is None else self._drafts(text, draft, whole)
        if len(drafts) != len(spans):
            drafts = [" ".join(drafts)] * len(spans)
        encoded = {
            guess: self.encoders.encode(guess, is_target=True) if guess else ""
            for guess in set(drafts)
        }
        tag = ""  # holds for the sentences that follow, too
        parts: list[Part] = []
        for (start, end), guess in zip(spans, drafts, strict=True):
            sentence = text[start:end]
            tag = self.tag(sentence, tag)
            is_cut = self.splits and not whole
            parts += self._parts(sentence, start, tag, encoded[guess], is_cut)
        return parts

    def _drafts(self, text: str, draft: str, whole: bool) -> list[str]:
        """The sentences of a draft, split by the rules of its language."""
        named = _TAG.search(text) if self.tags else None
        language = named[1].strip("<>") if named else self.target_lang
        return [draft[start:end] for start, end in self._spans(draft, language, whole)]

    def _parts(
        self, sentence: str, start: int, tag: str, draft: str, is_cut: bool
    ) -> Iterator[Part]:
        """A sentence, or its parts; `start`: where it begins in its text."""

        @cache
        def encode(piece: str) -> Tensor:
            return self.encode(_tagged(piece, tag))

        spans = [(0, len(sentence))]
        if is_cut:
            spans = cut_at_clauses(
                sentence, lambda piece: len(encode(piece)) <= self.longest
            )
        for first, last in spans:
            source = sentence[first:last]
            tokens = encode(source)
            note = None
            if len(tokens) > self.longest:
                note = f"too long: {len(tokens)} tokens, and the model takes {self.longest}; copied"
            elif self._may_lack_subwords and mostly_unknown(
                tokens, self.source_dictionary
            ):
                self._may_lack_subwords = False
                logger.warning(missing_subwords(source))
            yield Part(source, start + first, _tagged(source, tag), draft, tokens, note)

    def _spans(self, text: str, language: str | None, whole: bool) -> list[Span]:
        """Where the inputs of a text are: its sentences, its lines, or all of it."""
        if whole or not self.splits:
            pattern = _WHOLE if whole else _LINE
            return [found.span() for found in pattern.finditer(text)]
        tags: list[Span] = []
        if self.tags:
            tags = [(tag.start(1), tag.end()) for tag in _TAG.finditer(text)]
        spans: list[Span] = []
        # what is between two tags is split alone
        for (start, first), (end, _) in pairwise([(0, 0), *tags, (len(text), 0)]):
            between = text[first:end]
            found = split_text(between, language or "en", markers=self.corrects)
            sentences = [(first + begin, first + last) for begin, last in found]
            # a tag belongs to the first sentence after it, and is one if there is none
            if first > start:
                last = sentences[0][1] if sentences else first + len(between.rstrip())
                sentences[:1] = [(start, last)]
            spans += sentences
        return spans

    def text(self, output: Tensor, sentence: str) -> str:
        """An output's dictionary indices as running text, spaced as the sentence of which it is the output."""
        dictionary = self.task.target_dictionary
        tokens = dictionary.string(output, extra_symbols_to_ignore=self.hidden)
        tokenizer = self.encoders.tokenizer
        if self.encoders.bpe is not None:
            tokens = self.encoders.bpe.decode(tokens)
        if isinstance(tokenizer, AsWrittenTokenizer):
            return WrittenLine(sentence).restored(tokens)
        text = tokens if tokenizer is None else tokenizer.decode(tokens)
        # a model with byte subwords can produce line feeds
        text = " ".join(text.split("\n"))
        return match_spacing(sentence, text) if self.corrects else text

    def tokens(self, output: Tensor) -> list[str]:
        """The subwords of an output, EOS included."""
        return [self.task.target_dictionary[index] for index in output.tolist()]

    def result(self, text: str, parts: Sequence[Part], outputs: Outputs) -> Result:
        """The result of a text, by the outputs of its parts."""
        sentences = [self._sentence(part, outputs) for part in parts]
        edits = edits_of(sentences) if self.corrects else None
        return result_of(text, sentences, edits)

    def _sentence(self, part: Part, outputs: Outputs) -> Sentence:
        source = part.source
        end = part.start + len(source)
        if not part.is_decoded:
            return Sentence(source, part.start, end, source, note=part.note)
        # the n-best list
        hypotheses = outputs[part.key]
        nbest = [
            Hypothesis(
                self.text(one["tokens"], source),
                self.tokens(one["tokens"])[:-1],
                float(one["score"]),
            )
            for one in hypotheses
        ]
        best = nbest[0]
        # a model whose subwords nobody has named
        if (
            self._may_lack_subwords
            and any(map(_SUBWORD.search, best.tokens))
            and not _SUBWORD.search(source)
        ):
            self._may_lack_subwords = False
            logger.warning(
                f"the output '{best.text[:60]}' is in subwords: name them (--bpe), and they are joined"
            )
        # a corrector's output that cannot be a correction
        text = best.text
        note = None
        if self.corrects:
            words = [
                self.source_dictionary[index] for index in part.tokens[:-1].tolist()
            ]
            if reason := degenerated(words, best.tokens):
                text = source
                note = f"{reason}; left as it was"
        # what it took to decode it
        stats = hypotheses[0].get("stats")
        return Sentence(
            source, part.start, end, text, best.tokens, best.score, nbest,
            iterations=len(best.tokens) + 1 if stats is None else stats.iterations,
            drafted=0 if stats is None else sum(stats.drafted),
            accepted=0 if stats is None else sum(stats.accepted),
            note=note,
        )  # fmt: skip


def _tagged(source: str, tag: str) -> str:
    """A text after its target language, which it may have already; "": it needs none."""
    return f"{tag} {source.removeprefix(tag).lstrip()}" if tag else source
