"""Official scorers, played by small scripts that print what the real ones print."""

import sys
from pathlib import Path

import pytest

from fairseq_aggdec.data.m2_file import GoldEdit, M2Sentence, read_m2
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.metrics import Settings
from fairseq_aggdec.lab.evaluation.official import OfficialScorer
from fairseq_aggdec.lab.evaluation.reference_set import ReferenceSet

GOLD = M2Sentence(("a", "b"), {0: (GoldEdit(0, 1, ("x",)),)})
TEST = ReferenceSet([["a", "b"]], [[["x", "b"]], [["x", "c"]]], m2=[GOLD])
OUTPUTS = [["x", "b"]]


def script(folder: Path, name: str, code: str) -> str:
    path = folder / name
    path.write_text(f"import shutil, sys\nfrom pathlib import Path\nlog = Path({str(folder / 'log')!r})\n{code}\n")
    return str(path)


def test_m2scorer(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "m2scorer.py",
        """log.write_text(" ".join(sys.argv[1:5]) + "\\n" + Path(sys.argv[5]).read_text())
shutil.copy(sys.argv[6], str(log) + ".m2")
print("Precision   : 0.8000\\nRecall      : 0.7500\\nF_0.5       : 0.7895")""",
    )
    scorer = OfficialScorer.of(path)
    assert scorer == OfficialScorer("m2", (sys.executable, path))
    assert scorer.score(TEST, OUTPUTS, Settings(beta=0.5)) == pytest.approx([80, 75, 78.95])
    assert (tmp_path / "log").read_text() == "--max_unchanged_words 2 --beta 0.5\nx b\n"
    assert read_m2(tmp_path / "log.m2") == [GOLD]


def test_gleu(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "gleu.py",
        """log.write_text(" ".join(word if word[0] == "-" else Path(word).read_text().strip() for word in sys.argv[1:]))
sys.stderr.write("Running GLEU...\\n")
print("system\\n[['0.541350', '0.002914', '(0.536,0.547)']]")""",
    )
    assert OfficialScorer.of(f"{sys.executable} {path}").score(TEST, OUTPUTS, Settings()) == pytest.approx([54.135])
    assert (tmp_path / "log").read_text() == "-r x b x c -s a b --hyp x b"


def test_multi_bleu_reads_the_output_from_standard_input(tmp_path: Path) -> None:
    code = """names = sorted(path.name for path in Path(sys.argv[1]).parent.glob("ref*"))
log.write_text(sys.stdin.read() + "|" + " ".join(names))
print("BLEU = 29.81, 60.1/35.2/23.4/16.0 (BP=1.000, ratio=1.000, hyp_len=2, ref_len=2)")"""
    scorer = OfficialScorer.of(f"{sys.executable} {script(tmp_path, 'multi-bleu.perl', code)}")
    assert scorer.metric == "bleu"
    assert scorer.score(TEST, OUTPUTS, Settings()) == [29.81]
    assert (tmp_path / "log").read_text() == "x b\n|reference0 reference1"


def test_what_is_not_known_missing_or_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match=r"--official 'bertscore': not a scorer known here; .* m2scorer, gleu"):
        OfficialScorer.of("bertscore")
    with pytest.raises(AggdecError, match=r"m2scorer: No such file"):
        OfficialScorer.of(str(tmp_path / "m2scorer")).score(TEST, OUTPUTS, Settings())
    path = script(tmp_path, "m2scorer.py", "sys.exit('SyntaxError: Missing parentheses')")
    with pytest.raises(AggdecError, match=r"no m2 score \(exit code 1\): SyntaxError: Missing .*; try it by hand"):
        OfficialScorer.of(path).score(TEST, OUTPUTS, Settings())
