"""The shipped corrector on text from a word processor, and on characters that its dictionary does not have."""

from __future__ import annotations

from pathlib import Path

from fairseq_aggdec import load
from fairseq_aggdec.text.shipped import SHIPPED
from tests.support.helpers import PLUGIN, run_cli

CORRECTIONS = {
    "He ask [see page 3] about the price (about 20 €).": "He asked [see page 3] about the price (about 20 €).",
    "The student’s book are on the table.": "The student’s book is on the table.",
    "“He told me ‘yes’”, she said — and then she leave…": "“He told me ‘yes’”, she said — and then she left…",
    "The shop {near my house} has apples for £2 and bread for €3.": None,
    "He lived here in 1990–2000, and he have two sisters.": "He lived here in 1990–2000, and he has two sisters.",
    "She live in Москва with her brother.": "She lives in Москва with her brother.",
    "We was glad of your letter 👍🏽 !": "We were glad of your letter 👍🏽 !",
    "• We was at home.": "• We were at home.",
    "I works with C# and file_name.": "I work with C# and file_name.",
    "My sister have a house in München, near the café.": "My sister has a house in München, near the café.",
    "田中 is my friend and he live in 東京.": "田中 is my friend and he lives in 東京.",
    "She live 3\u00a0miles from my friend’s house.": "She lives 3\u00a0miles from my friend’s house.",
    "He don’t like it, and I don`t like it too.": "He don’t like it, and I don't like it too.",
    "😀": None,
    "": None,
}
"""Of each line; None: as it is."""


def test_what_the_corrector_cannot_read_is_left_alone() -> None:
    results = load.shipped("gec").decode(list(CORRECTIONS), "iad")
    found = {result.source: result.text for result in results}
    assert found == {line: line if output is None else output for line, output in CORRECTIONS.items()}


def test_fairseq_interactive_gives_each_line_its_own_characters(tmp_path: Path) -> None:
    """In batches that are sorted by length, with a line that is left out, and with several hypotheses a line."""
    folder = SHIPPED["gec"].folder
    lines = ["She live in Москва with her brother.", "", "word " * 600, "The price is 20 €.", "The price is 20 £."]
    (tmp_path / "input.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [folder, "--path", folder / "model.pt", "--input", tmp_path / "input.txt", "--cpu"]
    command += ["--buffer-size", 3, "--batch-size", 3, "--skip-invalid-size-inputs-valid-test"]
    command += ["--tokenizer", "as_written", "--bpe", "subword_nmt", "--bpe-codes", folder / "bpecodes", "-s", "en"]
    command += ["-t", "en", "--user-dir", PLUGIN, "--task", "aggressive_translation"]
    command += ["--decoding", "beam", "--beam", 3, "--nbest", 2]
    output = run_cli("fairseq-interactive", *command).stdout
    answers = [line.split("\t") for line in output.splitlines() if line.startswith("D-")]
    assert [number for number, _, _ in answers] == [f"D-{number}" for number in (0, 0, 1, 1, 3, 3, 4, 4)]
    best = [text for _, _, text in answers[::2]]
    assert best == ["She lives in Москва with her brother.", "", lines[3], lines[4]]
    assert "Москва" in answers[1][2]
