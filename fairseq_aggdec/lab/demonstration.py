"""What `aggdec demo` prints: sentences with the blocks of their outputs, and the speed of each mode."""

import time
from typing import Any

from tabulate import tabulate

from fairseq_aggdec.demo.correction_guard import trusted
from fairseq_aggdec.demo.shipped import ShippedModel
from fairseq_aggdec.generation.modes import (
    AGGRESSIVE_BEAM,
    BEAM,
    GAD,
    GAD_PLUS,
    GREEDY,
    IAD,
)
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.machine import describe, machine
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.record import run_of
from fairseq_aggdec.lab.bench.rounds import compare, decode_once
from fairseq_aggdec.lab.bench.tables import speed_table
from fairseq_aggdec.lab.trace import Trace, segments, text
from fairseq_aggdec.lab.verify.references import References, refuse_differing
from fairseq_aggdec.model import Model, load
from fairseq_aggdec.tasks.loading import batches_of

_BY_MODEL = (GAD, GAD_PLUS, f"{GAD_PLUS}:5:3")
"""modes with drafts of the second model; the first one's blocks are shown"""
_SECONDS = 15
"""of the first mode's first round, and until when a further round begins"""


def show(
    demo: ShippedModel, lines: list[str], shown: int, rounds: int, colour: bool
) -> None:
    """Print some sentences with the blocks of their outputs, and the speed of each mode over all sentences.

    Args:
        demo: the model to show.
        lines: what to decode, each of one sentence or several.
        shown: the number of sentences to print, in their order; edited ones are chosen first.
        rounds: how often each mode is timed, at most.
        colour: whether blocks are coloured.

    Raises:
        AggdecError: after all is printed: the output of a lossless mode was not that of greedy decoding.
    """
    model = load.shipped(demo.name)
    sentences = [sentence for line in lines for sentence in model.sentences(line)]
    sources = [model.encode(sentence) for sentence in sentences]
    batches = batches_of(model.task, sources, 1)
    copies = demo.drafter is None
    title, *drafting = (
        ("Grammar correction", IAD)
        if copies
        else ("English-German translation", *_BY_MODEL)
    )
    modes = [f"{BEAM}5", f"{AGGRESSIVE_BEAM}:5", f"{BEAM}1", GREEDY, *drafting]
    # how each sentence is decoded, untimed
    recorded = FairseqRunner(
        model.task,
        model.models,
        batches,
        ModeSpec.parse(drafting[0]),
        retain_iter_history=True,
    )
    found = [
        output.hypothesis or {}
        for _, output in sorted(decode_once(recorded).outputs.items())
    ]
    changed = [
        own["tokens"].tolist() != source.tolist()
        for own, source in zip(found, sources, strict=True)
    ]
    # edited sentences show most
    chosen = sorted(
        sorted(range(len(sentences)), key=lambda number: not changed[number])[:shown]
    )
    # how fast
    runners = [
        FairseqRunner(model.task, model.models, batches, ModeSpec.parse(mode))
        for mode in modes
    ]
    began = time.monotonic()
    computed = time.thread_time()
    results = compare(runners, rounds, began + _SECONDS, _SECONDS)
    share = (time.thread_time() - computed) / (time.monotonic() - began)
    symbols = model.task.target_dictionary.symbols
    References("cpu").note_differences(results, symbols)

    print(f"\n{title} of {len(sentences)} sentences; {describe(machine())}\n")
    if chosen:
        for number in chosen:
            sentence = sentences[number]
            output = model.text(found[number]["tokens"], sentence)
            output = trusted(sentence, output) if copies else output
            print(f"{number}: {sentence}\n   {output}\n")
        drafted = "copied from the input" if copies else "the second model's"
        traces = [
            _trace(model, number, sentences[number], found[number]) for number in chosen
        ]
        print(
            text(
                {
                    f"{drafting[0]}: drafts are {drafted}, verified in one pass each": traces
                },
                colour,
            )
        )
    if copies:
        print(f"{sum(changed)} of {len(sentences)} sentences corrected\n")
    print(
        f"Timed sentences: {len(runners[0].batches)}, as many as {modes[0]} decoded in {_SECONDS} seconds at most"
    )
    if share < 0.8:
        print(
            f"THE MACHINE WAS BUSY: this program had a processor for {share:.0%} of the time. fairseq's search suffers "
            "most from that: take no speed-up from this table, repeat it on a quiet machine"
        )
    greedy = results[modes.index(GREEDY)]
    runs = [run_of(result, greedy) for result in results]
    headers, rows = speed_table(runs, short=True)
    print(f"\n{tabulate(rows, headers)}")
    refuse_differing([run.mode for run in runs if run.counts.differing])


def _trace(
    model: Model, number: int, sentence: str, hypothesis: dict[str, Any]
) -> Trace:
    """The blocks of a sentence's output."""
    drafts = [model.tokens(entry["tokens"]) for entry in hypothesis["history"]]
    return Trace(
        number,
        [sentence],
        segments(model.tokens(hypothesis["tokens"]), hypothesis["stats"], drafts),
    )
