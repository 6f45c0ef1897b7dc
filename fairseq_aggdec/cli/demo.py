"""`aggdec-demo`: grammar correction with the shipped model, by beam search, greedy decoding and IAD side by side."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, install_excepthook

MODEL = Path(__file__).parent.parent / "demo" / "gec"
_MODES = ("beam5", "beam1", "greedy", "iad")


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the demo; see --help."""
    parser = argparse.ArgumentParser(
        prog="aggdec-demo",
        description="Correct English sentences with the shipped model and compare fairseq's search with this plugin.",
    )
    parser.add_argument("sentences", nargs="*", help="sentences to correct (default: a built-in set)")
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

    install_excepthook()
    sentences = _read(args.sentences, args.input)
    colour = args.colour == "always" or (args.colour == "auto" and sys.stdout.isatty())
    _run(sentences, args.show, args.rounds, args.threads, colour)


def _read(given: list[str], source: str | None) -> list[str]:
    if given and source:
        raise AggdecError("give sentences or --input, not both")
    if given:
        lines = given
    else:
        name = "standard input" if source == "-" else source or "the built-in sentences"
        try:
            data = sys.stdin.buffer.read() if source == "-" else Path(source or MODEL / "sentences.txt").read_bytes()
        except OSError as error:
            raise AggdecError(f"{name}: cannot be read ({error.strerror})") from error
        try:
            lines = data.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise AggdecError(f"{name}, line {line}: not valid UTF-8; convert it, for example with iconv") from error
    sentences = [line.strip() for line in lines if line.strip()]
    if not sentences:
        raise AggdecError("no sentence given: nothing to correct")
    return sentences


def _run(sentences: list[str], show: int, rounds: int, threads: int | None, colour: bool) -> None:
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    import torch
    from tabulate import tabulate

    import fairseq_aggdec

    if threads:
        torch.set_num_threads(threads)
    fairseq_aggdec.register()
    from fairseq_aggdec import benchmark, trace
    from fairseq_aggdec.demo.model import DemoModel

    model = DemoModel.load(MODEL)
    sources = [model.encode(sentence) for sentence in sentences]
    for sentence, source in zip(sentences, sources, strict=True):
        if len(source) > model.max_tokens:
            raise AggdecError(f"the sentence '{sentence[:60]}...' is longer than {model.max_tokens} tokens: split it")
    batches = benchmark.batches_of(model.task, sources, 1)
    results = {r.mode: r for r in benchmark.compare(model.task, model.models, batches, _MODES, rounds)}
    iad = results["iad"]

    print(f"\nGrammar correction of {len(sentences)} sentences; {benchmark.machine()}\n")
    outputs = [model.decode(torch.tensor(iad.outputs[number])) for number in range(len(sentences))]
    if show:
        print(
            f"{'blue' if colour else '[in brackets]'}: drafted from the input and verified in one block; "
            f"{'red' if colour else 'bare'}: the model's own token\n"
        )
    is_changed = [iad.outputs[number] != source.tolist() for number, source in enumerate(sources)]
    changed_first = sorted(range(len(sentences)), key=lambda number: not is_changed[number])
    for number in sorted(changed_first[:show]):
        stats = iad.hypotheses[number]["stats"]
        parts = trace.segments(model.tokens(torch.tensor(iad.outputs[number])), stats)
        print(f"  input   {sentences[number]}")
        print(f"  output  {outputs[number]}")
        print(f"  blocks  {trace.render(parts, colour)}   ({stats.iterations} iterations)\n")
    print(f"{sum(is_changed)} of {len(sentences)} sentences corrected\n")
    headers, rows = benchmark.table(list(results.values()))
    print(tabulate(rows, headers))


if __name__ == "__main__":
    main()
