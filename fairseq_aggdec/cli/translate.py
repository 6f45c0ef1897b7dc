"""`aggdec translate`: translates English into German, or any text by a model of one's own."""

from collections.abc import Sequence

from fairseq_aggdec.cli.text_command import run, text_parser

_EXAMPLE = """\
examples:
  aggdec translate "Where do you live?"
  aggdec translate --input letter.txt > brief.txt
  aggdec translate --path checkpoint.pt --data data-bin --tokenizer moses --bpe subword_nmt --bpe-codes codes < text"""


def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = text_parser(
        "translate",
        "Translate text of any number of sentences and lines. The model that comes with this package has learnt short, "
        "everyday sentences.",
        _EXAMPLE,
    )
    run(parser, argv, "mt")


if __name__ == "__main__":
    main()
