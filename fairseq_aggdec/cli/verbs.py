"""`aggdec VERB ...`: the commands of this plugin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from fairseq_aggdec.errors import AggdecError, on_command_line

GROUPS = {
    "try and trust": {
        "demo": "decode sentences with shipped models, by fairseq's search and by this plugin side by side",
        "verify": "check that this plugin's output is fairseq's, for your model on your machine",
        "user-dir": "print the folder that fairseq's --user-dir needs",
    },
    "text in, text out": {
        "correct": "correct text or files, by a shipped model or your own",
        "translate": "translate text or files, by a shipped model or your own",
        "serve": "correct and translate over HTTP, for editors and programs, with a page to try it on",
    },
    "decode": {
        "decode": "decode large text files, in any mode, in many processes",
        "compare": "compare two outputs of fairseq-generate, token by token",
    },
    "measure": {
        "bench": "time modes side by side on the same sentences",
        "super-resolve": "decode and time images: greedy, exact and approximate blockwise decoding side by side",
        "report": "print measurements as tables and figures, also beside the papers', and traces of sentences",
        "tune": "measure which block size, top-beta and tolerance gad++ should have",
        "score": "score outputs: BLEU, ROUGE, SARI, GLEU, M2 and others",
    },
    "train": {
        "drafter": "make a drafter for your model: distil, train, measure, in one command",
        "corrupt": "make (erroneous, clean) sentence pairs from clean English text",
        "prepare": "make fairseq's binary data out of an experiment's raw text",
        "shrink": "make a shallow model out of a deep one",
        "distill": "replace a data folder's targets by a teacher's translations",
        "average": "average the last checkpoints of a training run",
        "nat-start": "make a start for training fairseq's non-autoregressive models",
        "export": "pack a trained model into a small folder that needs nothing else",
    },
}
"""{group: {verb: what it does}}, in the order of use"""

VERBS = {verb: (verb.replace("-", "_"), "main") for group in GROUPS.values() for verb in group}
"""{verb: (a module of this folder, its function that takes the words behind the verb)}"""
VERBS |= {verb: ("text_command", verb) for verb in ("correct", "translate")}
for _verb in ("average", "compare", "corrupt", "export", "nat-start", "prepare", "shrink", "super-resolve", "user-dir"):
    VERBS[_verb] = ("small_verbs", _verb.replace("-", "_"))


@on_command_line()
def main(argv: Sequence[str] | None = None) -> int | None:
    """Run a verb and return its exit status; without one, or with --help, list all; --version prints the version.

    Raises:
        AggdecError: there is no such verb, or what the verb raises.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(_help())
        return None
    if words[0] == "--version":
        print(f"aggdec {version('fairseq-aggdec')}")
        return None
    verb, *rest = words
    if verb not in VERBS:
        from difflib import get_close_matches

        (nearest,) = get_close_matches(verb, VERBS, n=1, cutoff=0)
        raise AggdecError(f"aggdec {verb}: there is no such verb; the nearest is {nearest}, aggdec --help lists all")
    module, function = VERBS[verb]
    status: int | None = getattr(import_module(f"{__package__}.{module}"), function)(rest)
    return status


def _help() -> str:
    width = max(map(len, VERBS))
    lines = ["usage: aggdec VERB ...  or  aggdec --version", "", "`aggdec VERB --help` says what a verb takes."]
    for group, verbs in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {verb:{width}}  {text}" for verb, text in verbs.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
