"""`aggdec translate`: translates English into German, or any text by a model of one's own."""

from collections.abc import Sequence

from fairseq_aggdec.cli.text_command import TextOptions, run

_HELP = """\
Translate text of any number of sentences and lines.
The model that comes with this package has learnt short, everyday sentences.

examples:
  aggdec translate "Where do you live?"
  aggdec translate --input letter.txt > brief.txt
  aggdec translate --path checkpoint.pt --data data-bin --tokenizer moses --bpe subword_nmt --bpe-codes codes < text"""


def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    run(TextOptions, "translate", argv, "mt", _HELP)


if __name__ == "__main__":
    main()
