from pathlib import Path

from fairseq_aggdec.lab.tuning.points import all_settings
from fairseq_aggdec.lab.tuning.tables import block_size_table, choice_text
from tests.lab.tuning.papers import papers_sweep


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]


def test_block_sizes_as_in_the_paper(tmp_path: Path) -> None:
    table = block_size_table(papers_sweep(tmp_path), all_settings([10, 15], [3], [1.0]), "BLEU")
    heading, _, _, greedy, ten, _ = rows(table)
    assert heading == ["model", "k", "Tok.", "BLEU", "speed"]
    assert greedy == ["AR (greedy)", "", "1.00", "26.62", "1.25x"]
    # 200 s of greedy over 100/5.97 s in the same rounds, times 500 s of beam search over 400 s of greedy in theirs
    assert ten == ["GAD++ (top-3, τ = 1)", "10", "5.97", "26.68", "14.92x"]


def test_choice(tmp_path: Path) -> None:
    sweep = papers_sweep(tmp_path)
    text = choice_text(sweep, "BLEU", margin=0.4, loss=-0.2)
    high_quality, high_efficiency, _, *front = text.splitlines()
    assert (
        high_quality
        == "high-quality (BLEU of at least 27.02, 0.4 above greedy's): k 25, β 5, τ 1: 7.58 / 27.02, 18.95x"
    )
    assert high_efficiency.startswith(
        "high-efficiency (BLEU of at least 26.82, -0.2 below greedy's): k 25, β 5, τ 3: 9.72"
    )
    assert front[-1].strip().startswith("k 25, β 5, τ 5")
    assert "high-quality (no loss): k 25, β 5, τ 5" in choice_text(sweep, "BLEU", margin=0.0, loss=0.5)
    assert ": none" in choice_text(sweep, "BLEU", margin=9.0, loss=0.5)
