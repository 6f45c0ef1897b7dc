from pathlib import Path

from experiments import ptb
from sacremoses import MosesTokenizer

from fairseq_aggdec.lab.score.gleu import corpus_gleu, sentence_statistics

SOURCE = "a b c d e f".split()
REFERENCE = "a b x d e f".split()


def test_statistics_worked_by_hand() -> None:
    # Output "a b c d e g" for source "a b c d e f" and reference "a b x d e f".
    # 1-grams: a b d e match (4); c stands in the source and not in the reference (-1); g in neither (0): 3 of 6.
    # 2-grams: ab, de match (2); bc, cd are kept from the source (-2); eg (0): 0 of 5.
    # 3-grams: none matches; abc, bcd, cde are kept: -3, clipped to 0 of 4. 4-grams: abcd, bcde: -2, clipped to 0 of 3.
    output = "a b c d e g".split()
    assert sentence_statistics(SOURCE, output, REFERENCE) == [6, 6, *(3, 0, 0, 0), *(6, 5, 4, 3)]
    assert corpus_gleu([SOURCE], [output], [[REFERENCE]]) == 0.0


def test_the_digits_of_jflegs_own_script(aggdec_data: Path) -> None:
    # gleu.py under Python 3 for the unchanged source on Moses tokens: 40.60
    moses = MosesTokenizer("en")

    def tokens(name: str) -> list[list[str]]:
        lines = (aggdec_data / f"jfleg/test.{name}").read_text(encoding="utf-8").splitlines()
        return [moses.tokenize(ptb.detokenise(line), escape=False) for line in lines]

    sources, references = tokens("src"), [tokens(f"ref{number}") for number in range(4)]
    assert round(100 * corpus_gleu(sources, sources, references), 2) == 40.60
