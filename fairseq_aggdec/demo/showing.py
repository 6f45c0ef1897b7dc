"""What `aggdec demo` prints: sentences with the blocks of their outputs, and the speed of each mode."""

from typing import Any

import torch
from tabulate import tabulate

from fairseq_aggdec.generation.modes import AGGRESSIVE_BEAM, BEAM, GAD, GAD_PLUS, GREEDY, IAD
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.machine import describe, machine
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.record import run_of
from fairseq_aggdec.lab.bench.rounds import compare, decode_once
from fairseq_aggdec.lab.bench.tables import speed_table
from fairseq_aggdec.lab.trace import Trace, segments, text
from fairseq_aggdec.lab.verify.references import References, refuse_differing
from fairseq_aggdec.model import Model, load
from fairseq_aggdec.tasks.loading import batches_of
from fairseq_aggdec.text.shipped import ShippedModel

_BY_MODEL = (GAD, GAD_PLUS, f"{GAD_PLUS}:5:3")
"""modes with drafts of the second model; the first one's blocks are shown"""


def show(demo: ShippedModel, lines: list[str], shown: int, rounds: int, colour: bool) -> None:
    """Print some sentences with the blocks of their outputs, and the speed of each mode over all sentences.

    Args:
        demo: the model to show.
        lines: what to decode, each of one sentence or several.
        shown: the number of sentences to print, in their order; edited ones are chosen first.
        rounds: how often each mode is timed.
        colour: whether blocks are coloured.

    Raises:
        AggdecError: after all is printed: the output of a lossless mode was not that of greedy decoding.
    """
    model = load.shipped(demo.name)
    sentences = [sentence for line in lines for sentence in model.sentences(line)]
    sources = [model.encode(sentence) for sentence in sentences]
    batches = batches_of(model.task, sources, 1)
    copies = demo.drafter is None
    title, *drafting = ("Grammar correction", IAD) if copies else ("English-German translation", *_BY_MODEL)
    modes = [f"{BEAM}5", f"{AGGRESSIVE_BEAM}:5", f"{BEAM}1", GREEDY, *drafting]
    runners = [FairseqRunner(model.task, model.models, batches, Mode.parse(mode)) for mode in modes]
    results = compare(runners, rounds)
    symbols = model.task.target_dictionary.symbols
    different = References("cpu", lambda mode: "fp32").differences(runners, results, symbols)
    by_name = {result.mode.name: result for result in results}
    outputs = [torch.tensor(output.tokens) for _, output in sorted(by_name[drafting[0]].outputs.items())]

    print(f"\n{title} of {len(sentences)} sentences; {describe(machine())}\n")
    changed = [output.tolist() != source.tolist() for output, source in zip(outputs, sources, strict=True)]
    # edited sentences show most
    chosen = sorted(sorted(range(len(sentences)), key=lambda number: not changed[number])[:shown])
    drafted = "are copied from the input" if copies else "are the second model's"
    if chosen:
        edited = [batches[number] for number in chosen]
        mode = Mode.parse(drafting[0])
        decoded = decode_once(FairseqRunner(model.task, model.models, edited, mode, retain_iter_history=True))
        traces = [
            _trace(model, number, sentences[number], decoded.outputs[number].hypothesis or {}) for number in chosen
        ]
        print(text({f"{drafting[0]}: drafts {drafted}, verified in one pass each": traces}, colour))
    if copies:
        print(f"{sum(changed)} of {len(sentences)} sentences corrected\n")
    greedy = by_name.get(GREEDY)
    runs = [run_of(result, "fp32", different.get(result.mode.name), greedy, "fp32") for result in results]
    headers, rows = speed_table(runs, short=True)
    print(tabulate(rows, headers))
    refuse_differing({run.mode: run.differing or 0 for run in runs})


def _trace(model: Model, number: int, sentence: str, hypothesis: dict[str, Any]) -> Trace:
    """The blocks of a sentence's output."""
    drafts = [model.tokens(entry["tokens"]) for entry in hypothesis["history"]]
    return Trace(number, [sentence], segments(model.tokens(hypothesis["tokens"]), hypothesis["stats"], drafts))
