"""Decode: `aggdec decode`."""

import argparse
from dataclasses import asdict, dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from fairseq_aggdec.bulk.settings import STDIN
from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import Count, Flag, Maybe
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import (
    AGGRESSIVE,
    AGGRESSIVE_BEAM,
    CHOICES,
    MODES,
    modes_help,
    readers,
)
from fairseq_aggdec.generation.options import Decoding, help_of, name_of, type_of


def _mode_options() -> Any:
    """A dataclass of the options of `Decoding` that some modes read, with the help texts of fairseq-generate."""
    narrow: dict[str, Any] = {
        name: Annotated[str, options.choice(values)] for name, values in CHOICES.items()
    }
    narrow["block_size"] = Count
    found = []
    for option in fields(Decoding):
        if readers(option.name) or option.name == "block_ngrams":
            plain, may_be_none = type_of(option)
            kind = (
                Flag
                if plain is bool
                else narrow.get(option.name, plain | None if may_be_none else plain)
            )
            shown = arg(help=help_of(option), help_behavior_hint="")
            found.append(
                (name_of(option), Annotated[kind, shown], field(default=option.default))
            )
    return make_dataclass("ModeOptions", found, kw_only=True)


_ModeOptions: Any = _mode_options()
_DEFAULT = f"(default: {AGGRESSIVE}, or {AGGRESSIVE_BEAM} where a --model has a beam of its own)"
_DECODING = arg(help=f"{modes_help()} {_DEFAULT}", help_behavior_hint="")


@dataclass(kw_only=True)
class Decode(options.Bulk, options.Encoders, _ModeOptions):
    """Decode text files of one sentence a line, in any mode of the plugin.

    The outputs of FILE are in OUT/FILE.*.txt, in the order of cat OUT/FILE.*.txt. Each line has
    one output; that of an empty line is empty, and so is that of a line which cannot be
    translated, being too long or not UTF-8; where a model corrects, what cannot be decoded stays
    as it was (these lines are listed in OUT/skipped.tsv). To go on after a command was stopped or
    killed, start it again.
    """

    # folder with the dictionaries, made by fairseq-preprocess
    data: Positional[Maybe[str]] = None
    path: Maybe[str] = None  # checkpoint, or several joined by ':'
    #: in place of DATA and --path: folder of a model in Hugging Face's format, imported once, or of aggdec import-hf
    model: Maybe[Path] = None
    # fairseq's name of the model's task, such as translation_multi_simple_epoch
    task: str = "translation"
    output: Path  # folder to write
    # files of text; '-': the standard input
    input: list[str] = field(default_factory=lambda: ["-"])
    #: decode each line as a whole (default: with --tokenizer, or a --bpe that reads text, by sentences)
    one_sentence_a_line: Flag = False
    # subwords that a sentence may have, longer ones are cut at clauses (default: all)
    longest: Maybe[Count] = None
    # number of threads of a worker, which can change outputs at near-ties
    threads: Count = 1
    shard_lines: Count = 2000  # number of lines in a shard
    # beam of --decoding beam and aggressive-beam (default: the --model's own, or 5)
    beam: Maybe[Count] = None
    decoding: Annotated[str | None, options.choice(MODES), _DECODING] = None

    def check(self) -> None:
        if bool(self.model) == bool(self.data and self.path):
            raise AggdecError("give DATA and --path, or --model")
        # an imported model has a search of its own
        mode = self.decoding or (None if self.model else AGGRESSIVE)
        if self.beam is not None and mode and not MODES[mode].has_beam:
            raise AggdecError(
                f"--beam goes with --decoding beam and aggressive-beam: --decoding {mode} has a beam of one"
            )
        names = [STDIN if name == "-" else Path(name).name for name in self.input]
        for name in names:
            if names.count(name) > 1:
                raise AggdecError(
                    f"--input: two files are called {name}, and their outputs would be, too; give one a folder apart"
                )
            longer = next(
                (other for other in names if other.startswith(f"{name}.")), None
            )
            if longer is not None:
                raise AggdecError(
                    f"--input: {name}.*.txt would be outputs of {longer}, too; give another name"
                )

    def run(self) -> None:
        drafter = Decoding.from_args(self).drafter
        options.start(None, self.path, drafter, tells="fairseq_aggdec.bulk")
        from fairseq_aggdec.bulk.text import decode_text

        verb = self._completed()
        of_model = verb.given(options.Encoders, _ModeOptions)
        for name in ("tokenizer", "bpe", "draft_file"):
            of_model.pop(name, None)
        of_model["decoding"] = verb.decoding or AGGRESSIVE
        values = asdict(verb)
        changed = {
            option.name: values[option.name]
            for option in fields(verb)
            if values[option.name] != option.default
        }
        args = argparse.Namespace(**values, precision=self.precision)
        decode_text(args, of_model, changed)

    def _completed(self) -> "Decode":
        """With the files of an imported model, or with the default mode and beam of another one."""
        if self.model is None:
            mode = self.decoding or AGGRESSIVE
            beam = (self.beam or 5) if MODES[mode].has_beam else None
            return replace(self, decoding=mode, beam=beam)
        from fairseq_aggdec.hub.importing import imported
        from fairseq_aggdec.hub.settings import MODEL

        folder = imported(self.model)
        return replace(
            self, data=str(folder), path=str(folder / MODEL), bpe=self.bpe or "hub"
        )
