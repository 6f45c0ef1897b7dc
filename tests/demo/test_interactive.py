"""The shipped corrector in fairseq-interactive, on characters that its dictionary does not have."""

from pathlib import Path

from fairseq_aggdec.demo.shipped import SHIPPED
from tests.support.helpers import PLUGIN, run_cli


def test_fairseq_interactive_gives_each_line_its_own_characters(tmp_path: Path) -> None:
    """In batches that are sorted by length, with a line that is left out, and with several hypotheses a line."""
    folder = SHIPPED["gec"].folder
    lines = [
        "She live in Москва with her brother.",
        "",
        "word " * 600,
        "The price is 20 €.",
        "The price is 20 £.",
    ]
    (tmp_path / "input.txt").write_text("\n".join(lines) + "\n", "utf-8")
    command = [
        folder,
        "--path",
        folder / "model.pt",
        "--input",
        tmp_path / "input.txt",
        "--cpu",
    ]
    command += [
        "--buffer-size",
        3,
        "--batch-size",
        3,
        "--skip-invalid-size-inputs-valid-test",
    ]
    command += [
        "--tokenizer",
        "as_written",
        "--bpe",
        "subword_nmt",
        "--bpe-codes",
        folder / "bpecodes",
        "-s",
        "en",
    ]
    command += ["-t", "en", "--user-dir", PLUGIN, "--task", "aggressive_translation"]
    command += ["--decoding", "beam", "--beam", 3, "--nbest", 2]
    output = run_cli("fairseq-interactive", *command).stdout
    answers = [
        line.split("\t") for line in output.splitlines() if line.startswith("D-")
    ]
    assert [number for number, _, _ in answers] == [
        f"D-{number}" for number in (0, 0, 1, 1, 3, 3, 4, 4)
    ]
    best = [text for _, _, text in answers[::2]]
    assert best == ["She lives in Москва with her brother.", "", lines[3], lines[4]]
    assert "Москва" in answers[1][2]
