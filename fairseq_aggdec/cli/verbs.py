"""`aggdec VERB ...`: the commands of this plugin."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from fairseq_aggdec.checkout import CONFIGS, load_part
from fairseq_aggdec.errors import AggdecError, on_command_line

if TYPE_CHECKING:
    from fairseq_aggdec.cli.options import Verb

GROUPS = {
    "try and trust": {
        "demo": "decode sentences with shipped models, by fairseq's search and by this plugin side by side",
        "verify": "check that this plugin's output is fairseq's, for your model on your machine",
        "user-dir": "print the folder that fairseq's --user-dir needs",
    },
    "text in, text out": {
        "correct": "correct text or files, by a shipped model or your own",
        "translate": "translate text or files, by a shipped model or your own",
        "import-hf": "make a model in Hugging Face's format one that fairseq and this plugin read",
        "serve": "correct and translate over HTTP, for editors and programs, with a page to try it on",
    },
    "decode": {
        "decode": "decode large text files, in any mode, in many processes",
    },
    "measure": {
        "bench": "time modes side by side on the same sentences",
        "tune": "measure which block size, top-beta and tolerance gad++ should have",
        "super-resolve": "decode and time images: greedy, exact and approximate blockwise decoding side by side",
    },
    "results": {
        "report": "print measurements as tables and figures",
        "report experiment": "print an experiment's results beside the papers'",
        "report paper": "print the papers' tables",
        "report trace": "print how sentences were decoded, iteration by iteration",
        "score files": "score outputs: BLEU, ROUGE, SARI, GLEU, M2 and others",
        "score experiment": "score all outputs of an experiment",
        "compare": "compare two outputs of fairseq-generate, token by token",
    },
    "train": {
        "drafter": "make a drafter for your model: distil, train, measure, in one command",
        "binarize": "make fairseq's binary data out of text for an imported model",
        "distill": "replace a data folder's targets by a teacher's translations",
        "corrupt": "make (erroneous, clean) sentence pairs from clean English text",
        "prepare": "make fairseq's binary data out of an experiment's raw text",
        "shrink": "make a shallow model out of a deep one",
        "average": "average the last checkpoints of a training run",
        "nat-start": "make a start for training fairseq's non-autoregressive models",
        "export": "pack a trained model into a small folder that needs nothing else",
    },
}
"""{group: {verb: what it does}}, in the order of use"""
_MODULES = dict(
    zip(GROUPS, ("trust", "text", "decode", "measure", "report", "train"), strict=True)
)
VERBS = {verb: _MODULES[group] for group, verbs in GROUPS.items() for verb in verbs}
"""{verb: the module of this folder that has its class}"""
_OF_EXPERIMENTS = dict.fromkeys(
    ("prepare", "nat-start", "score experiment", "report experiment", "report paper"),
    "experiments.commands",
)
_OF_EXPERIMENTS["super-resolve"] = "super_resolution.command"
"""{verb: the module of configs/shared that has its class}"""

_EXTRAS = {
    "lab": ("cattrs", "matplotlib", "nltk", "PIL", "pooch", "requests", "rouge_score"),
    "serve": ("starlette", "uvicorn"),
}
"""what the extras install that verbs need"""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> int | None:
    """Run a verb and return its exit status; without one, or with --help, list all; --version prints the version.

    Raises:
        AggdecError: there is no such verb, or what the verb raises.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(_help(VERBS))
        return None
    if words[0] == "--version":
        from fairseq_aggdec.installed import about, warn_of_two_fairseqs

        print(about())
        warn_of_two_fairseqs()
        return None
    commands = [verb for verb in VERBS if verb.startswith(f"{words[0]} ")]
    if commands and _name(words) is None:
        print(_help(commands))
        return 0 if set(words[1:]) & {"-h", "--help"} else 2
    # fairseq, imported later, would have all logged
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        return parse(words).run()
    except ModuleNotFoundError as error:
        extra = next(
            (name for name, libraries in _EXTRAS.items() if error.name in libraries),
            None,
        )
        if extra is None:
            raise
        raise AggdecError(
            f"aggdec {_name(words)} needs {error.name}: pip install 'fairseq-aggdec[{extra}]'"
        ) from None


def parse(words: Sequence[str]) -> Verb:
    """The verb that a command line names, with its options.

    Raises:
        AggdecError: there is no such verb.
    """
    name = _name(words)
    if name is None:
        from difflib import get_close_matches

        (nearest,) = get_close_matches(
            words[0], {verb.split()[0] for verb in VERBS}, n=1, cutoff=0
        )
        raise AggdecError(
            f"aggdec {words[0]}: there is no such verb; the nearest is {nearest}, aggdec --help lists all"
        )
    from fairseq_aggdec.cli.options import read  # tyro, which --help does not need

    return read(verb_class(name), name, words[len(name.split()) :])


def _name(words: Sequence[str]) -> str | None:
    """The verb of one or two words with which a command line begins."""
    return next(
        (name for count in (2, 1) if (name := " ".join(words[:count])) in VERBS), None
    )


def verb_class(name: str) -> type[Verb]:
    """The class of a verb, `ScoreFiles` of `score files`."""
    module: ModuleType
    if name == "corrupt":
        module = load_part("experiments.experiment").load_module(
            CONFIGS / "gec_small/errors/command.py"
        )
    elif name in _OF_EXPERIMENTS:
        module = load_part(_OF_EXPERIMENTS[name])
    else:
        module = import_module(f"{__package__}.{VERBS[name]}")
    found: type[Verb] = getattr(module, name.title().replace(" ", "").replace("-", ""))
    return found


def _help(names: Collection[str]) -> str:
    width = max(map(len, names))
    lines = [
        "usage: aggdec VERB ...  or  aggdec --version",
        "",
        "`aggdec VERB --help` says what a verb takes.",
    ]
    for group, verbs in GROUPS.items():
        if listed := [
            f"  {verb:{width}}  {text}" for verb, text in verbs.items() if verb in names
        ]:
            lines += ["", f"{group}:", *listed]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
