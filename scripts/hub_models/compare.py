"""Compares small models with transformers: `python -m scripts.hub_models.compare --sentences 200`.

transformers 5 reads the tokenizers of mBART-50, NLLB, Pegasus, T5 and mT5 otherwise than 4, which wrote them, and
than SentencePiece: it leaves or drops a piece for odd spaces. It prints those differences.
"""

import argparse
import tempfile
from pathlib import Path

from scripts.hub_models.hostile import hostile_lines
from scripts.hub_models.make_models import expected, hostile_input
from tests.hub.imported_models import MODELS, NAMES, Imported, differences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument(
        "--hostile",
        type=int,
        default=1000,
        help="lines whose encoder inputs are compared",
    )
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    arguments = parser.parse_args()
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as made:
            imported = Imported(name, Path(made) / name)
            rows = expected(name, MODELS / name, arguments.sentences)
            wrong = [
                text for size in (1, 16) for text in differences(imported, rows, size)
            ]
            lines = hostile_lines(arguments.hostile)
            theirs = hostile_input(name, MODELS / name, arguments.hostile)
            for line, tokens, others in zip(
                lines, imported.of(rows[0]).inputs(lines), theirs, strict=True
            ):
                if tokens != others:
                    wrong.append(
                        f"{line[:60]!r}: the encoder reads {tokens[:20]} in place of {others[:20]}"
                    )
        print(
            f"{name}: {len(rows)} sentences, {len(lines)} lines, {len(wrong)} differences",
            *wrong[:5],
            sep="\n  ",
        )


if __name__ == "__main__":
    main()
