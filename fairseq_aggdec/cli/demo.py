"""Show shipped models decoding sentences by fairseq's search and by this plugin, side by side.

`gec` corrects English by copying the input as the draft; `mt` translates English into German with drafts of a second
model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import argument, option
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import decode_text, read_text
from fairseq_aggdec.text.shipped import SHIPPED


@dataclass(kw_only=True)
class Options:
    sentences: list[str] = argument("English sentences (default: a built-in set)", [])
    task: Literal["gec", "mt"] = option("the model", "gec")
    input: str | None = option("file with one sentence in a line; '-' for the standard input", None)
    show: int = option("number of sentences whose blocks are shown", 5, least=0)
    rounds: int = option("how often each mode is timed", 3, least=1)
    threads: int | None = option("number of PyTorch's threads", None, least=1)
    colour: Literal["auto", "always", "never"] = option("colour the blocks", "auto")


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the demo; see --help.

    Raises:
        AggdecError: sentences and a file are given, there is no sentence, or a file cannot be read.
    """
    given = options.read(Options, "demo", argv, __doc__)
    if given.sentences and given.input:
        raise AggdecError("give sentences or --input, not both")
    demo = SHIPPED[given.task]
    lines = [decode_text(os.fsencode(sentence), "the sentence") for sentence in given.sentences]
    if not lines:  # a line feed alone ends a sentence, as in fairseq
        lines = read_text(given.input or demo.folder / "sentences.txt").split("\n")
    sentences = [line.strip() for line in lines if line.strip()]
    if not sentences:
        raise AggdecError("no sentence given: nothing to decode")
    options.start(given.threads)
    from fairseq_aggdec.demo.showing import show
    from fairseq_aggdec.lab.trace import wants_colour

    show(demo, sentences, given.show, given.rounds, wants_colour(given.colour))
