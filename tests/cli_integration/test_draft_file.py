"""`--draft-file` and `load(...).decode(drafts=...)`: drafts change the number of iterations, and never an output."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.cli import decode
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.text.model import Model
from fairseq_aggdec.text.results import Result
from tests.cli_integration.correction import (
    SENTENCES,
    WORDS,
    Process,
    assert_same_hypotheses,
    generate_here,
    interact,
)
from tests.helpers import ToyModel, parse_generate
from tests.shards.decoding import TRANSLATE, outputs


class Case:
    """The test set, what stock fairseq makes of it, and runs with drafts."""

    def __init__(self, model: ToyModel, stock: str, folder: Path) -> None:
        self.model, self.stock, self.folder = model, stock, folder
        self.outputs = [tokens.tokens for _, tokens in sorted(parse_generate(stock).items())]
        self.sources = [sentence.source.split() for _, sentence in sorted(parse_generate(stock).items())]

    def decode(self, decoding: str, drafts: list[list[str]] | None, *options: object) -> dict[int, dict[str, Any]]:
        """The statistics of each sentence; its hypothesis is that of stock fairseq."""
        stats = self.folder / "stats.jsonl"
        given: list[object] = ["--decoding-stats", stats, *options]
        if drafts is not None:
            (self.folder / "drafts").write_text("".join(" ".join(draft) + "\n" for draft in drafts), encoding="utf-8")
            given += ["--draft-file", self.folder / "drafts"]
        output = generate_here(self.model, decoding, *given)
        records = {record["id"]: record for record in map(json.loads, stats.read_text().splitlines())}
        own = [line for line in self.stock.splitlines() if int(line[2:].split("\t")[0]) in records]
        assert_same_hypotheses(output, "\n".join(own))
        return records


@pytest.fixture
def case(correction_model: ToyModel, beam_one: Process, tmp_path: Path) -> Case:
    stock = [line for line in beam_one.stdout.splitlines() if line[:2] in ("S-", "H-", "P-")]
    return Case(correction_model, "\n".join(stock), tmp_path)


@pytest.mark.parametrize("batch", [1, 16])
def test_no_draft_changes_the_output(case: Case, batch: int) -> None:
    """Right, half wrong, longer than the output and than the model takes, of unknown words, none, and of control words.

    Whatever the draft is, the statistics are of source and output.
    """
    drafts = []
    for number, right in enumerate(case.outputs):
        half = [word if place % 4 < 2 else WORDS[number] for place, word in enumerate(right)]
        longer, foreign = [*right, *WORDS * 3], ["漢字", *right[:1], "nowhere"]
        drafts.append(
            [right, half, longer, foreign, [], ["<pad>", *right[:2], "</s>", *right[1:], "<unk>"]][number % 6]
        )
    options = ["--batch-size", batch, "--drafts", "whole"]
    found, copied = case.decode("iad", drafts, *options), case.decode("iad", None, *options)
    assert len(found) == SENTENCES
    for number, record in found.items():
        kind, length = number % 6, len(case.outputs[number])
        assert [record[name] for name in ("source_length", "output_length", "edit_ratio")] == [
            copied[number][name] for name in ("source_length", "output_length", "edit_ratio")
        ]
        if kind == 0:
            assert (record["iterations"], record["drafted"], record["accepted"]) == (1, length + 1, length + 1)
        elif kind == 1 and length > 4:
            assert 1 < record["iterations"] < length
            assert 0 < record["accepted"] < record["drafted"]
        elif kind == 2:
            assert record["iterations"] <= 2, "only EOS is not in the draft"
        elif kind == 3:
            assert record["accepted"] == 0, "an unknown word matches nothing"
        elif kind == 4:
            assert record["iterations"] == copied[number]["iterations"], "the source is copied"


@pytest.mark.parametrize("decoding", ["aggressive", "iad++"])
def test_a_shard_reads_the_lines_of_its_own_sentences(case: Case, decoding: str) -> None:
    found = case.decode(decoding, case.outputs, "--num-shards", 2, "--shard-id", 1, "--batch-size", 4)
    assert 0 < len(found) < SENTENCES
    assert {record["iterations"] for record in found.values()} == {1}
    assert any(case.sources[number] != case.outputs[number] for number in found)


def test_fairseq_interactive_has_no_data_set(case: Case) -> None:
    case.decode("iad", case.outputs)
    run = interact(case.model, "iad", "--draft-file", case.folder / "drafts", stdin="ba\n", check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("error: --draft-file: its lines belong to the sentences of a data")


ENGLISH = "Where do you live? I live in Berlin."


def iterations(result: Result) -> list[int]:
    return [sentence.iterations for sentence in result.sentences]


def test_translations_need_few_iterations_with_drafts_of_a_text() -> None:
    """By a model with two vocabularies: a draft of as many sentences, of another number, and of some texts alone."""
    model = Model.shipped("mt")
    alone = model.decode(ENGLISH, "iad")
    assert min(iterations(alone)) > 4
    right = model.decode(ENGLISH, drafts=alone.text)
    assert (right.text, iterations(right)) == (alone.text, [1, 1]), "what was learnt of copies of the source is apart"
    joined = model.decode(ENGLISH, "iad", drafts=alone.text.replace("? ", ", "))
    assert joined.text == alone.text
    assert max(iterations(joined)) <= 3
    some = model.decode([ENGLISH, ENGLISH], "iad", drafts=[None, alone.text], batch_size=1)
    assert list(map(iterations, some)) == [iterations(alone), [1, 1]]
    with pytest.raises(AggdecError, match="drafts: 1 for 2 texts"):
        model.decode([ENGLISH, ENGLISH], drafts=[alone.text])
    with pytest.raises(AggdecError, match=r"drafts .* are read by iad, iad\+\+, aggressive only, not by gad"):
        model.decode(ENGLISH, "gad", drafts=alone.text)


def test_aggdec_decode_reads_a_line_of_drafts_beside_each_line(tmp_path: Path) -> None:
    lines = [*ENGLISH.replace("? ", "?\n").split("\n"), "", "I has a dog."]
    (tmp_path / "text").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "drafts").write_bytes("Wo wohnen Sie?\nIch wohne in K\xf6ln.\n\n\n".encode("latin-1"))
    files = ["--input", tmp_path / "text", "--cpu", "--shard-lines", 1, "--decoding", "iad"]
    for name, own in {"with": ["--draft-file", tmp_path / "drafts"], "without": []}.items():
        decode.main([*map(str, [*TRANSLATE, *files, *own, "--output", tmp_path / name])])
    assert outputs(tmp_path / "with") == outputs(tmp_path / "without")
    (tmp_path / "drafts").write_text("Wo?\n", encoding="utf-8")
    with pytest.raises(AggdecError, match=r"drafts: has 1 lines, and --input .*text 4"):
        decode.main([*map(str, [*TRANSLATE, *files, "--draft-file", tmp_path / "drafts", "--output", tmp_path / "x"])])
