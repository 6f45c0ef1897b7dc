"""`aggdec correct`: corrects English text, or any text by a correction model of one's own."""

from collections.abc import Sequence

from fairseq_aggdec.cli.text_command import CorrectOptions, run
from fairseq_aggdec.text.shipped import CAREFUL

_HELP = """\
Correct text of any number of sentences and lines, whose spacing stays.
What the shipped corrector is good for: docs/corrector.md.

examples:
  aggdec correct "She have two brother."
  aggdec correct --diff --input letter.txt
  pbpaste | aggdec correct > corrected.txt"""


def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    run(CorrectOptions, "correct", argv, "gec", _HELP, **CAREFUL)


if __name__ == "__main__":
    main()
