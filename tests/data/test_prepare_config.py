"""What a `prepare.yaml` may say: senseless entries are refused by their names before any work is done."""

from pathlib import Path

import pytest

from fairseq_aggdec.data.prepare_config import PrepareConfig
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import read_yaml
from tests.data.preparing import ROOT

PAIRS = "parallel: {train: {file: a}, valid: {file: b}, test: {file: c}}"
TABLE = "sentence_pairs: {file: a, columns: [0, 1]}"
CLEAN = "clean_text: [{file: a}]"
HOLD_OUT = "hold_out: {valid: 5, test: 5}"


def read(folder: Path, *entries: str, languages: str = "{source: src, target: tgt}") -> PrepareConfig:
    (folder / "prepare.yaml").write_text("\n".join((f"languages: {languages}", *entries)))
    return PrepareConfig.read(folder / "prepare.yaml")


def refusal(folder: Path, *entries: str, languages: str = "{source: src, target: tgt}") -> str:
    """The message, without the file's name at its beginning."""
    with pytest.raises(AggdecError) as caught:
        read(folder, *entries, languages=languages)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'prepare.yaml'}")
    return message.removeprefix(f"{folder / 'prepare.yaml'}")


def test_all_experiments_can_be_read() -> None:
    files = [path for path in ROOT.glob("configs/*/prepare.yaml") if "languages" in read_yaml(path)]
    assert len(files) > 10
    for path in files:
        PrepareConfig.read(path)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([PAIRS, "max_tokens: 0"], ": max_tokens: 0: must be at least 1"),
        ([PAIRS, "min_occurrences: -1"], ": min_occurrences: -1: must be at least 1"),
        ([PAIRS, "max_source_tokens: -1"], ": max_source_tokens: -1: must be at least 1"),
        ([PAIRS, "bpe: {symbols: -5}"], ", bpe: symbols: -5: must be at least 0"),
        ([PAIRS, "clean: {max_words: 9, ratio: 0.5}"], ", clean: ratio: 0.5: must be at least 1"),
        (["parallel: {train: {file: a, columns: [0, 1, 2]}}"], ", parallel, train: columns: [0, 1, 2]: must be two"),
        (["parallel: {train: [{file: a, first: 0}]}"], ", parallel, train, 1: first: 0: must be at least 1"),
        (["sentence_pairs: {file: a, columns: [0]}", HOLD_OUT], ", sentence_pairs: columns: [0]: must be two"),
        (["sentence_pairs: {file: a, columns: [0, -1]}", HOLD_OUT], ", sentence_pairs: columns: [0, -1]: must be two"),
        (
            ["sentence_pairs: {file: a, columns: [0, 1], long_share: 2}", HOLD_OUT],
            ", sentence_pairs: long_share: 2: must be from 0 to 1",
        ),
        ([CLEAN, "hold_out: {valid: -5, test: 5}"], ": hold_out: valid: -5: must be at least 1"),
        (["clean_text: [{file: a, repeat: 0}]", HOLD_OUT], ", clean_text, 1: repeat: 0: must be at least 1"),
        (["clean_text: [{file: a, column: -1}]", HOLD_OUT], ", clean_text, 1: column: -1: must be at least 0"),
        (
            [CLEAN, HOLD_OUT, "joined: {lines: 5, min_words: 36, max_words: 20}"],
            ", joined: max_words: 20: must be at least 36",
        ),
        (
            [CLEAN, HOLD_OUT, "unusual_characters: {share: 1.5, seed: 1}"],
            ", unusual_characters: share: 1.5: must be from 0 to 1",
        ),
        ([CLEAN, HOLD_OUT, "corrupt: {vocab_size: -1}"], ", corrupt: vocab_size: -1: must be at least 0"),
    ],
)
def test_numbers_out_of_range_are_refused(entries: list[str], message: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, *entries).startswith(message)


@pytest.mark.parametrize("name", ["''", "a/b", "../../evil", ".hidden", "-s", "'a,b'"])
def test_names_that_are_no_file_names_are_refused(name: str, tmp_path: Path) -> None:
    for entry in (f"test_sets: [{{name: {name}, source: a}}]", f"further_training_sets: [{name}]"):
        assert "names files" in refusal(tmp_path, PAIRS, entry)
    assert ", languages: " in refusal(tmp_path, PAIRS, languages=f"{{source: {name}, target: tgt}}")


def test_two_things_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("train", "train1", "valid", "wi", "other"):
        sets = [f"test_sets: [{{name: {name}, source: a}}, {{name: other, source: b}}]", "further_training_sets: [wi]"]
        joined = "joined: {lines: 1, min_words: 1, max_words: 1}"
        assert f": '{name}': is the name of two things" in refusal(tmp_path, CLEAN, HOLD_OUT, joined, *sets)
    assert "'de': is the name of two things" in refusal(tmp_path, PAIRS, languages="{source: de, target: de}")
    for entry in (PAIRS, "documents: {files: {valid: a}, source: a, target: b}"):
        assert ": hold_out: valid: has sentences of its own" in refusal(tmp_path, entry, "hold_out: {valid: 5}")
    assert ": hold_out: train: has sentences of its own" in refusal(tmp_path, CLEAN, "hold_out: {train: 5}")
    assert ": hold_out: train1: has sentences of its own" in refusal(tmp_path, CLEAN, joined, "hold_out: {train1: 5}")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["parallel: {valid: {file: a}}", "hold_out: {test: 5}"], "train: give it in parallel or hold_out"),
        ([PAIRS, "further_training_sets: [foo]"], "foo: give it in parallel or hold_out"),
        ([TABLE, "hold_out: {valid: 5}"], "test: give it in hold_out"),
        (
            [TABLE, HOLD_OUT, "test_sets: [{name: b, source: b}]"],
            "b: give it in hold_out; sentence_pairs has no test_sets",
        ),
        (
            ["documents: {files: {train: a, valid: b}, source: a, target: b}", "hold_out: {test: 5}"],
            "test: in documents, give train, valid, test in files",
        ),
        (
            [
                "documents: {files: {train: a, valid: b, test: c}, source: a, target: b, scores: c}",
                "further_training_sets: [train1, pretrain]",
            ],
            "pretrain: in documents, .*denoising for pretrain",
        ),
        ([CLEAN, "hold_out: {valid: 5}"], "test: give it in hold_out"),
        ([CLEAN, HOLD_OUT, "further_training_sets: [foo]"], "foo: give it in hold_out"),
    ],
)
def test_a_set_that_nothing_makes_is_missing(entries: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match=rf"prepare.yaml: says nothing of {message}"):
        read(tmp_path, *entries)


def test_what_could_not_be_prepared_is_refused_at_once(tmp_path: Path) -> None:
    entries = [PAIRS, "tokenizer: as_written", "tokenizer_language: {src: en, tgt: de}"]
    assert refusal(tmp_path, *entries).startswith(": tokenizer: as_written: is for English; tokenizer_language is {")
    message = refusal(tmp_path, PAIRS, "test_sets: [{name: real}]")
    assert message.startswith(": test_sets: real: the source is missing")
    assert PrepareConfig.read(tmp_path / "prepare.yaml", to_prepare=False).test_sets  # scoring needs its name alone
    assert refusal(tmp_path, PAIRS, "folder: x").startswith(": unknown entry (folder)")


def test_sentences_of_two_kinds_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, PAIRS, CLEAN)
    assert message == ": parallel and clean_text: the sentences come from one of them; leave out the others"
