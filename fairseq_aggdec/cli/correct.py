"""`aggdec correct`: corrects English text, or any text by a correction model of one's own."""

from collections.abc import Sequence

from fairseq_aggdec.cli.text_command import run, text_parser
from fairseq_aggdec.text.shipped import CAREFUL

_EXAMPLE = """\
examples:
  aggdec correct "She have two brother."
  aggdec correct --diff --input letter.txt
  pbpaste | aggdec correct > corrected.txt"""


def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = text_parser(
        "correct",
        "Correct text: of any number of sentences and lines, whose spacing stays. What the shipped "
        "corrector is good for: docs/corrector.md.",
        _EXAMPLE,
    )
    parser.add_argument(
        "--diff", action="store_true", help="print the text with its changes marked, in colour on a terminal"
    )
    run(parser, argv, "gec", **CAREFUL)


if __name__ == "__main__":
    main()
