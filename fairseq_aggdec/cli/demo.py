"""`aggdec-demo`: shipped models decode sentences by fairseq's search and by this plugin, side by side."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_aggdec.demo.tasks import TASKS, DemoTask
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import decode_text
from fairseq_aggdec.trace import wants_colour

if TYPE_CHECKING:
    from fairseq_aggdec.demo.model import DemoModel


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the demo; see --help."""
    parser = argparse.ArgumentParser(
        prog="aggdec-demo",
        description="Correct English sentences (gec, by copying the input as the draft) or translate them into German "
        "(mt, drafts by a second model), and compare fairseq's search with this plugin.",
    )
    parser.add_argument("sentences", nargs="*", help="English sentences (default: a built-in set)")
    parser.add_argument("--task", choices=sorted(TASKS), default="gec", help="default: %(default)s")
    parser.add_argument("--input", help="a file with one sentence a line, '-' for standard input")
    parser.add_argument("--show", type=int, default=5, help="sentences whose blocks are shown (default: 5)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each mode is timed (default: 3)")
    parser.add_argument("--threads", type=int, help="torch threads")
    parser.add_argument("--colour", choices=("auto", "always", "never"), default="auto")
    args = parser.parse_args(argv)
    for name, least in (("show", 0), ("rounds", 1), ("threads", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            parser.error(f"--{name} {value}: must be at least {least}")

    demo = TASKS[args.task]
    sentences = _read(args.sentences, args.input, demo.folder / "sentences.txt")
    colour = wants_colour(args.colour)
    _run(demo, sentences, args.show, args.rounds, args.threads, colour)


def _read(given: list[str], source: str | None, built_in: Path) -> list[str]:
    if given and source:
        raise AggdecError("give sentences or --input, not both")
    if given:
        lines = given
    else:
        name = "standard input" if source == "-" else source or "the built-in sentences"
        try:
            data = sys.stdin.buffer.read() if source == "-" else Path(source or built_in).read_bytes()
        except OSError as error:
            raise AggdecError(f"{name}: cannot be read ({error.strerror})") from error
        lines = decode_text(data, name).splitlines()
    sentences = [line.strip() for line in lines if line.strip()]
    if not sentences:
        raise AggdecError("no sentence given: nothing to decode")
    return sentences


def _run(demo: DemoTask, sentences: list[str], show: int, rounds: int, threads: int | None, colour: bool) -> None:
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    import torch
    from tabulate import tabulate

    import fairseq_aggdec

    if threads:
        torch.set_num_threads(threads)
    fairseq_aggdec.register()
    from fairseq_aggdec.benchmarking.alarm import compare_with_greedy, refuse, say
    from fairseq_aggdec.benchmarking.fairseq_runner import runners_of
    from fairseq_aggdec.benchmarking.machine import describe, machine
    from fairseq_aggdec.benchmarking.record import run_of
    from fairseq_aggdec.benchmarking.rounds import compare
    from fairseq_aggdec.benchmarking.tables import speed_table
    from fairseq_aggdec.demo.model import DemoModel
    from fairseq_aggdec.loading import batches_of

    model = DemoModel.load(demo)
    sources = [model.encode(sentence) for sentence in sentences]
    for sentence, source in zip(sentences, sources, strict=True):
        if len(source) > model.max_tokens:
            raise AggdecError(f"the sentence '{sentence[:60]}...' is longer than {model.max_tokens} tokens: split it")
    batches = batches_of(model.task, sources, 1)
    runners = runners_of(model.task, model.models, batches, demo.modes)
    results = compare(runners, rounds)
    different = compare_with_greedy(runners, results, lambda mode: "fp32")
    by_name = {result.mode.name: result for result in results}
    outputs = [torch.tensor(output.tokens) for _, output in sorted(by_name[demo.shown].outputs.items())]

    print(f"\n{demo.title} of {len(sentences)} sentences; {describe(machine())}\n")
    changed = [output.tolist() != source.tolist() for output, source in zip(outputs, sources, strict=True)]
    # what an example can show best: sentences that were edited
    chosen = sorted(sorted(range(len(sentences)), key=lambda number: not changed[number])[:show])
    if chosen:
        drafted = "copied from the input" if demo.drafter is None else "drafted by the second model"
        print(
            f"{'blue' if colour else '[in brackets]'}: {drafted} and verified in one block; "
            f"{'red' if colour else 'bare'}: the model's own token"
            + ("" if demo.drafter is None else f"; {'struck through' if colour else '/between strokes/'}: rejected")
            + "\n"
        )
        edited = [batches[number] for number in chosen]
        (shown,) = compare(
            runners_of(model.task, model.models, edited, [demo.shown], retain_iter_history=True), 1, False
        )
        for number in chosen:
            _show(demo, model, sentences[number], shown.outputs[number].hypothesis or {}, colour)
    if demo.drafter is None:
        print(f"{sum(changed)} of {len(sentences)} sentences corrected\n")
    headers, rows = speed_table([run_of(result, "fp32") for result in results], short=True)
    print(tabulate(rows, headers))
    say(different, model.task.target_dictionary.symbols)
    refuse(different)


def _show(demo: DemoTask, model: "DemoModel", sentence: str, hypothesis: dict[str, Any], colour: bool) -> None:
    """Print a sentence, its output and the blocks that this was made of."""
    from fairseq_aggdec import trace

    stats = hypothesis["stats"]
    drafts = [model.tokens(entry["tokens"]) for entry in hypothesis["history"]]
    parts = trace.segments(model.tokens(hypothesis["tokens"]), stats, drafts)
    print(f"  input   {sentence}")
    print(f"  output  {model.decode(hypothesis['tokens'], sentence)}")
    if demo.drafter is None:
        print(f"  blocks  {trace.render(parts, colour)}   ({stats.iterations} iterations)\n")
        return
    for number, line in enumerate(trace.render_iterations(parts, colour), start=1):
        print(f"  {number:>6}  {line}")
    print()


if __name__ == "__main__":
    main()
