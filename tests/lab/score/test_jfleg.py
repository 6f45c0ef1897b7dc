"""GLEU of JFLEG, whose tokens an experiment of configs knows."""

from pathlib import Path

from experiments import ptb
from sacremoses import MosesTokenizer

from fairseq_aggdec.lab.score.gleu import corpus_gleu


def test_gleu_has_the_digits_of_jflegs_script(aggdec_data: Path) -> None:
    # gleu.py under Python 3 for the unchanged source on Moses tokens
    moses = MosesTokenizer("en")
    sources, *references = (
        [
            moses.tokenize(ptb.detokenise(line), escape=False)
            for line in (aggdec_data / f"jfleg/test.{name}")
            .read_text("utf-8")
            .splitlines()
        ]
        for name in ("src", "ref0", "ref1", "ref2", "ref3")
    )
    assert round(100 * corpus_gleu(sources, sources, references), 2) == 40.60
