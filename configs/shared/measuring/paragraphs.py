"""Does a corrected paragraph keep all of its sentences? Paragraphs of clean sentences, with errors put in.

usage: python configs/shared/measuring/paragraphs.py [--paragraphs 200] [--mode iad++] [--clean] [--whole] [--jfleg]
  --clean puts no errors in: how many sentences are changed all the same? --whole decodes each paragraph as one sentence
  and without the guard, as before there was a way for text. A sentence counts as lost where less than half of its words
  are in the output, in their order. --jfleg decodes JFLEG's test set as text in place of the paragraphs: its GLEU.
"""

import argparse
import gzip
import os
from difflib import SequenceMatcher
from pathlib import Path
from unittest.mock import patch

from fairseq_aggdec import load
from fairseq_aggdec.checkout import CONFIGS, load_part
from fairseq_aggdec.demo.shipped import CAREFUL
from fairseq_aggdec.lab.score.gleu import corpus_gleu
from fairseq_aggdec.text import pipeline

load_module = load_part("experiments.experiment").load_module
errors = load_module(CONFIGS / "gec_small/errors/corruption.py")
lexicon = load_module(CONFIGS / "gec_small/errors/lexicon.py")
detokenise = load_part("experiments.ptb").detokenise
as_written = load_part("experiments.subwords").as_written
FILE = "onestopenglish/onestop.sentences.en.txt.gz"
"""news for learners, which the shipped corrector was not trained on"""


def paragraphs(folder: Path, count: int, words: int = 90) -> list[list[str]]:
    """Neighbouring sentences of the clean text, at least so many words together, from all of its parts."""
    with gzip.open(folder / FILE, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    chosen = []
    for place in range(count):
        sentences: list[str] = []
        rest = iter(lines[len(lines) * place // count :])
        while sum(len(sentence.split()) for sentence in sentences) < words:
            sentences.append(next(rest))
        chosen.append(sentences)
    return chosen


def lost(sentences: list[str], output: str) -> list[str]:
    """The sentences of which the output has less than half of the words."""
    words = [
        (number, word)
        for number, sentence in enumerate(sentences)
        for word in sentence.split()
    ]
    matcher = SequenceMatcher(
        None, [word for _, word in words], output.split(), autojunk=False
    )
    kept = [0] * len(sentences)
    for block in matcher.get_matching_blocks():
        for number, _ in words[block.a : block.a + block.size]:
            kept[number] += 1
    return [
        sentence
        for sentence, count in zip(sentences, kept, strict=True)
        if 2 * count < len(sentence.split())
    ]


def jfleg(folder: Path, settings: dict[str, object]) -> str:
    """GLEU on Moses tokens of the corrected test set, and how many of its sentences were changed."""

    def tokens(lines: list[str]) -> list[list[str]]:
        return [as_written().encode(line).split() for line in lines]

    source, *references = (
        [
            detokenise(line)
            for line in (folder / "jfleg" / f"test.{name}")
            .read_text(encoding="utf-8")
            .splitlines()
        ]
        for name in ("src", "ref0", "ref1", "ref2", "ref3")
    )
    texts = [result.text for result in load.shipped("gec").decode(source, **settings)]
    score = corpus_gleu(
        tokens(source), tokens(texts), [tokens(lines) for lines in references]
    )
    changed = sum(text != line for text, line in zip(texts, source, strict=True))
    return f"JFLEG test, {settings['mode']}: GLEU {100 * score:.2f}, {changed} of {len(source)} changed"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--paragraphs", type=int, default=200)
    parser.add_argument("--mode", default="iad++")
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--jfleg", action="store_true")
    args = parser.parse_args()
    settings = CAREFUL if args.mode == CAREFUL["mode"] else {"mode": args.mode}
    folder = Path(os.environ.get("AGGDEC_DATA") or "../shared/data")
    if args.jfleg:
        print(jfleg(folder, settings))
        return
    # paragraphs, with errors put in
    clean = paragraphs(folder, args.paragraphs)
    corruptor = errors.Corruptor(
        lexicon.build_lexicon({}),
        errors.CorruptionConfig(error_rate=0.0 if args.clean else 0.1),
    )
    wrong = [
        " ".join(
            corruptor.corrupt_line(one, 1, 100 * number + place)[0]
            for place, one in enumerate(sentences)
        )
        for number, sentences in enumerate(clean)
    ]
    # corrected
    model = load.shipped("gec")
    if args.whole:
        model.splits = False
        model.longest = 512
        with patch.object(pipeline, "degenerated", lambda source, output: None):
            results = model.decode(wrong, **settings, progress=True)
    else:
        results = model.decode(wrong, **settings, progress=True)
    # what is no longer there
    missing = [
        lost(sentences, result.text)
        for sentences, result in zip(clean, results, strict=True)
    ]
    before = [
        lost(sentences, text) for sentences, text in zip(clean, wrong, strict=True)
    ]
    notes = [note for result in results for note in result.notes]
    print(
        f"{len(clean)} paragraphs, {sum(map(len, clean))} sentences, "
        f"{sum(len(text.split()) for text in wrong) / len(wrong):.0f} words each; {args.mode}: "
        f"{sum(map(bool, missing))} paragraphs lost a sentence ({sum(map(len, missing))} sentences; "
        f"{sum(map(len, before))} by the errors put in); {sum(len(result.edits) for result in results)} edits in "
        f"{sum(one.text != one.source for result in results for one in result.sentences)} sentences; {len(notes)} were "
        "left as they were"
    )
    for sentences in missing:
        for sentence in sentences:
            print(f"  lost: {sentence}")
    for note in notes:
        print(f"  {note}")


if __name__ == "__main__":
    main()
