"""`aggdec demo`: shipped models decode sentences by fairseq's search and by this plugin, side by side."""

import argparse
from collections.abc import Sequence

from fairseq_aggdec.cli import options
from fairseq_aggdec.demo.sentences import read_sentences
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.lab.reporting.trace import wants_colour
from fairseq_aggdec.text.shipped import SHIPPED


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the demo; see --help."""
    parser = argparse.ArgumentParser(
        prog="aggdec demo",
        description="Correct English sentences (gec, by copying the input as the draft) or translate them into German "
        "(mt, with drafts of a second model), and compare fairseq's search with this plugin.",
    )
    parser.add_argument("sentences", nargs="*", help="English sentences (default: a built-in set)")
    parser.add_argument("--task", choices=sorted(SHIPPED), default="gec", help="default: %(default)s")
    parser.add_argument("--input", help="file with one sentence in a line; '-' for the standard input")
    parser.add_argument("--show", type=int, default=5, help="number of sentences whose blocks are shown (default: 5)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each mode is timed (default: 3)")
    parser.add_argument("--threads", type=int, help="number of PyTorch's threads")
    parser.add_argument("--colour", choices=("auto", "always", "never"), default="auto")
    args = parser.parse_args(argv)
    options.check_least(parser, args, 0, "show")
    options.check_least(parser, args, 1, "rounds", "threads")
    demo = SHIPPED[args.task]
    sentences = read_sentences(args.sentences, args.input, demo.folder / "sentences.txt")
    colour = wants_colour(args.colour)
    options.start(args.threads)
    from fairseq_aggdec.demo.showing import show

    show(demo, sentences, args.show, args.rounds, colour)


if __name__ == "__main__":
    main()
