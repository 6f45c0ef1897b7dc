"""What the verbs' command lines have in common: how options are declared and read, groups of options, and the start.

A verb's options are the fields of a dataclass, which `read` fills from the command line by tyro. A field's name is the
option's, its type says how the words are read, and its help text is the comment beside it or, of several lines that
begin with `#:`, above it. Nothing here imports torch or fairseq, as `--help` must be fast.
"""

import logging
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from inspect import cleandoc
from pathlib import Path
from textwrap import indent
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args

import tyro
from tyro.conf import (
    DisallowNone,
    FlagCreatePairsOff,
    Positional,
    PositionalMetavarFromFieldName,
    arg,
    create_mutex_group,
)
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
)

from fairseq_aggdec.bulk.settings import MAX_TOKENS
from fairseq_aggdec.cli.quick_imports import quick_imports
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.files import check_checkpoints, check_result_file
from fairseq_aggdec.models.sizes import SIZES

TOKENIZERS = ("as_written", "moses", "nltk", "space")
SUBWORDS = "bert byte_bpe bytes characters fastbpe gpt2 hf_byte_bpe hub sentencepiece subword_nmt".split()
"""the names that fairseq has with this plugin; its registries take seconds to import"""
T = TypeVar("T")
NO_DEFAULT = arg(help_behavior_hint="")
"""for a field whose default says nothing, or is named in its help text"""


def number(
    kind: Callable[[str], Any], least: float = -math.inf
) -> PrimitiveConstructorSpec[Any]:
    """How an option reads a finite number of at least `least`; `kind` is int or float."""

    def read(word: str) -> Any:
        value = kind(word)
        if not least <= value < math.inf:
            raise ValueError(
                f"{word}: must be {'a finite number' if least == -math.inf else f'at least {least:g}'}"
            )
        return value

    return _spec(kind.__name__.upper(), read, lambda value: f"{value:g}")


def choice(known: Iterable[str]) -> PrimitiveConstructorSpec[Any]:
    """How an option reads one of `known`."""
    return replace(_spec(f"{{{','.join(known)}}}", str, str), choices=tuple(known))


def several(read: Callable[[str], Any], wanted: str) -> PrimitiveConstructorSpec[Any]:
    """How an option reads different values, separated by commas; `wanted` says what they are, for an error message."""

    def read_all(text: str) -> list[Any]:
        try:
            found = [read(word) for word in text.split(",")]
        except ValueError:
            found = []
        if not found or len(set(found)) < len(found):
            raise ValueError(f"{text}: give different {wanted}, separated by commas")
        return found

    return _spec(
        "X,X", read_all, lambda values: ",".join(f"{value:g}" for value in values)
    )


def numbers(kind: Callable[[str], Any], least: float) -> PrimitiveConstructorSpec[Any]:
    """How an option reads different numbers of at least `least`, separated by commas."""
    one = number(kind, least)
    return several(
        lambda word: one.instance_from_str([word]), f"numbers of at least {least:g}"
    )


def _spec(
    metavar: str, read: Callable[[str], Any], written: Callable[[Any], str]
) -> PrimitiveConstructorSpec[Any]:
    """How an option reads one word, and how the help text writes its default."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: read(words[0]),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [] if value is None else [written(value)],
    )


Maybe = Annotated[T | None, NO_DEFAULT]
"""an option that may be left out"""
Many = Annotated[list[T], NO_DEFAULT]
"""an option of several words"""
Flag = Annotated[bool, FlagCreatePairsOff, NO_DEFAULT]
"""an option without a value"""
Count = Annotated[int, number(int, 1)]
Natural = Annotated[int, number(int, 0)]
Number = Annotated[float, number(float)]
Counts = Annotated[list[int], numbers(int, 1)]

_RULES = ConstructorRegistry()


@_RULES.primitive_rule
def _maybe(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """`X | None` is read as X, so that an error names what X takes."""
    kinds = get_args(info.type)
    if len(kinds) != 2 or NoneType not in kinds:
        return None
    spec = ConstructorRegistry.get_primitive_spec(
        PrimitiveTypeInfo.make(kinds[0], info.markers)
    )
    assert isinstance(spec, PrimitiveConstructorSpec)
    return spec


class Verb:
    """A verb of `aggdec`, with its options; the docstring of its class is its description."""

    command = ""
    """the call as written in a shell"""

    def check(self) -> None:
        """Raise `AggdecError` where options do not go together."""

    def run(self) -> int | None:
        """Do it, and return the exit code if it is not 0; raises `AggdecError` where a file cannot be used."""
        raise NotImplementedError

    def given(self, *groups: Any) -> dict[str, Any]:
        """The options of these groups that were given: neither None nor False."""
        values = {
            option.name: getattr(self, option.name)
            for group in groups
            for option in fields(group)
        }
        return {
            name: value
            for name, value in values.items()
            if value is not None and value is not False
        }


def read(kind: type[Verb], name: str, words: Sequence[str]) -> Verb:
    """The verb with the options in the words behind its name; a wrong option exits with 2."""
    # tyro joins lines that begin with letters
    about = indent(cleandoc(str(kind.__doc__)).replace("\n\n", "\n"), " ")
    config = (DisallowNone, PositionalMetavarFromFieldName)
    verb = tyro.cli(
        kind,
        prog=f"aggdec {name}",
        description=about,
        args=words,
        config=config,
        registry=_RULES,
    )
    verb.command = shlex.join(["aggdec", *name.split(), *words])
    try:
        verb.check()
    except AggdecError as error:
        print(f"aggdec {name}: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    return verb


_PRECISION = create_mutex_group(required=False, title="precision")


@dataclass(kw_only=True)
class HalfPrecision:
    fp16: Annotated[Flag, _PRECISION] = False  # half precision
    bf16: Annotated[Flag, _PRECISION] = False  # bfloat16, on a GPU

    @property
    def precision(self) -> str | None:
        """The given precision's name."""
        return "fp16" if self.fp16 else "bf16" if self.bf16 else None


@dataclass(kw_only=True)
class Languages:
    # where the data or the model has several pairs
    source_lang: Annotated[Maybe[str], arg(aliases=["-s"])] = None
    # where the data or the model has several pairs
    target_lang: Annotated[Maybe[str], arg(aliases=["-t"])] = None


@dataclass(kw_only=True)
class Search:
    # as in fairseq-generate, as all search options (default: 1)
    lenpen: Maybe[Number] = None
    unkpen: Maybe[Number] = None  # default: 0
    max_len_a: Maybe[Number] = None  # default: 0
    max_len_b: Maybe[Count] = None  # default: 200
    min_len: Maybe[int] = None  # default: 1
    no_repeat_ngram_size: Maybe[int] = None  # default: 0, off
    temperature: Maybe[Number] = None  # default: 1


@dataclass(kw_only=True)
class Bulk(Search, Languages, HalfPrecision, Verb):
    """Decoding of much text, in many processes."""

    max_tokens: Count = MAX_TOKENS  # most source tokens of a batch, padding included
    batch_size: Maybe[Count] = None  # most sentences of a batch (default: no limit)
    cpu: Flag = False  # use no GPU
    workers: Count = 1  # number of processes, each of which loads the models


@dataclass(kw_only=True)
class Encoders:
    """Options of fairseq-interactive for tokens and subwords."""

    #: tokeniser of the input, undone in the output
    tokenizer: Annotated[str | None, choice(TOKENIZERS), NO_DEFAULT] = None
    # subwords of the input, joined again in the output
    bpe: Annotated[str | None, choice(SUBWORDS), NO_DEFAULT] = None
    bpe_codes: Maybe[str] = None  # of --bpe subword_nmt and fastbpe
    bpe_separator: Maybe[str] = None  # of --bpe subword_nmt (default: @@)
    sentencepiece_model: Maybe[str] = None  # of --bpe sentencepiece
    sentencepiece_model_path: Maybe[str] = None  # of --bpe byte_bpe
    bpe_merges: Maybe[str] = None  # of --bpe hf_byte_bpe
    bpe_vocab: Maybe[str] = None  # of --bpe hf_byte_bpe
    bpe_add_prefix_space: Flag = False  # of --bpe hf_byte_bpe
    gpt2_encoder_json: Maybe[str] = None  # of --bpe gpt2
    gpt2_vocab_bpe: Maybe[str] = None  # of --bpe gpt2
    bpe_cased: Flag = False  # of --bpe bert
    bpe_vocab_file: Maybe[str] = None  # of --bpe bert
    moses_no_dash_splits: Flag = False  # of --tokenizer moses
    moses_no_escape: Flag = False  # of --tokenizer moses
    hub_folder: Maybe[str] = None  # of --bpe hub: folder of aggdec import-hf


@dataclass(kw_only=True)
class Subject(Languages):
    """What a model decodes, and where."""

    gen_subset: str = "test"  # split to decode
    limit: Maybe[Count] = None  # only the first N sentences
    threads: Maybe[Count] = None  # number of threads of PyTorch and of the peers
    device: Literal["cpu", "cuda"] = "cpu"  # where to decode


@dataclass(kw_only=True)
class SubjectOrRandom(Search, Subject, Verb):
    """A model and what it decodes, or a random model of a full size that decodes random sentences."""

    # fairseq's name of the model's task, such as translation_multi_simple_epoch
    task: str = "translation"
    data: Positional[Maybe[str]] = None  # folder made by fairseq-preprocess
    path: Maybe[str] = None  # checkpoint, or several joined by ':'
    # checkpoint of the drafter, for nar, gad, gad++ and speculative
    drafter_path: Maybe[str] = None
    #: use a model of this size, not trained, instead of DATA and --path; drafts are made of its greedy output
    random_model: Annotated[str | None, choice(SIZES), NO_DEFAULT] = None
    length: Count = 25  # of a random model: number of tokens of source and output
    #: of a random model, for iad and iad++: edit ratio between the text that is copied and the output
    edit_ratio: Annotated[float, number(float, 0)] = 0.1
    #: of a random model, for gad, gad++ and speculative: mean accepted tokens of whole drafts
    accepted: Annotated[float, number(float, 1)] = 5.5
    #: of a random model: the precision whose numbers the weights are; a large model is mostly trained with --fp16
    trained_in: Literal["fp16", "fp32"] = "fp16"
    keep: Maybe[Path] = None  # keep the random models in this folder, for further runs
    # of a random model: number of layers of the drafters' decoders
    drafter_layers: Count = 2
    # number of tokens in a draft (default: what the drafter's checkpoint says)
    block_size: Maybe[Count] = None
    # write all results to this file (of bench: for aggdec report)
    json: Maybe[Path] = None

    def check_model(self, *names: str) -> None:
        """Raise `AggdecError` where no model is named, or a random one, and one of these options as well, or DATA."""
        given = ["DATA"] * bool(self.data)
        given += [
            option_name(name)
            for name in ("path", "drafter_path", *names)
            if getattr(self, name)
        ]
        if self.random_model and given:
            raise AggdecError(
                f"--random-model makes up its own data, models and lengths: leave out {', '.join(given)}"
            )
        if not self.random_model and not (self.data and self.path):
            raise AggdecError("give DATA and --path, or --random-model")
        if self.edit_ratio > 1:
            raise AggdecError(f"--edit-ratio {self.edit_ratio}: must be from 0 to 1")

    def start(self) -> None:
        """`start`; raises `AggdecError` also where --json would replace another kind of file."""
        if self.json:
            check_result_file(self.json, "{")
        start(self.threads, self.path, self.drafter_path)


def in_colour() -> bool:
    """Whether standard output is a terminal that is to show colours (https://no-color.org)."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def start(
    threads: int | None = None, *checkpoints: str | None, tells: str | None = None
) -> None:
    """Make the plugin known to fairseq, set PyTorch's threads (None: its default), and log warnings only.

    `tells`: name of the loggers that also say how far the work is.

    Raises:
        AggdecError: before all that, which takes seconds: one of the checkpoints does not exist.
    """
    check_checkpoints(*checkpoints)
    # fairseq may have set them when it was imported
    for logger in (None, "fairseq", "fairseq_aggdec"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    if tells:
        logging.getLogger(tells).setLevel(logging.INFO)
    with quick_imports():
        import torch

        import fairseq_aggdec

        fairseq_aggdec.register()
    if threads:
        torch.set_num_threads(threads)
