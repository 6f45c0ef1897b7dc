"""`--draft-file` and `load(...).decode(drafts=...)`: drafts change the number of iterations, and never an output."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec import load
from fairseq_aggdec.text.results import Result
from tests.bulk.decoding import TRANSLATE, outputs, run
from tests.cli.correction import (
    SENTENCES,
    WORDS,
    Process,
    assert_same_hypotheses,
    generate_here,
    interact,
)
from tests.support.helpers import ToyModel, parse_generate, refused_with


@dataclass
class Case:
    """The test set, what stock fairseq makes of it, and runs with drafts."""

    model: ToyModel
    stock: str
    folder: Path

    @property
    def outputs(self) -> list[list[str]]:
        return [
            sentence.tokens
            for _, sentence in sorted(parse_generate(self.stock).items())
        ]

    def decode(
        self, decoding: str, drafts: list[list[str]], *options: object
    ) -> dict[int, dict[str, Any]]:
        """The statistics of each sentence; its hypothesis is that of stock fairseq."""
        stats = self.folder / "stats.jsonl"
        file = self.folder / "drafts"
        file.write_text("".join(" ".join(draft) + "\n" for draft in drafts), "utf-8")
        output = generate_here(
            self.model,
            decoding,
            "--decoding-stats",
            stats,
            "--draft-file",
            file,
            *options,
        )
        records = {
            record["id"]: record
            for record in map(json.loads, stats.read_text().splitlines())
        }
        lines = [
            line for line in self.stock.splitlines() if line[:2] in ("S-", "H-", "P-")
        ]
        assert_same_hypotheses(
            output,
            "\n".join(
                line for line in lines if int(line[2:].split("\t")[0]) in records
            ),
        )
        return records


@pytest.fixture
def case(correction_model: ToyModel, beam_one: Process, tmp_path: Path) -> Case:
    return Case(correction_model, beam_one.stdout, tmp_path)


@pytest.mark.parametrize("batch", [1, 16])
def test_no_draft_changes_the_output(case: Case, batch: int) -> None:
    """Right, half wrong, longer than the output and than the model takes, of unknown words, none, of control words."""
    drafts = []
    for number, right in enumerate(case.outputs):
        half = [
            word if place % 4 < 2 else WORDS[number] for place, word in enumerate(right)
        ]
        controls = ["<pad>", *right[:2], "</s>", *right[1:], "<unk>"]
        drafts.append(
            [
                right,
                half,
                [*right, *WORDS * 3],
                ["漢字", *right[:1], "none"],
                [],
                controls,
            ][number % 6]
        )
    options = ["--batch-size", batch, "--drafts", "whole"]
    found = case.decode("iad", drafts, *options)
    copied = case.decode("iad", [[]] * SENTENCES, *options)
    assert len(found) == SENTENCES
    for number, record in found.items():
        kind = number % 6
        length = len(case.outputs[number])
        if kind == 0:
            assert (record["iterations"], record["drafted"], record["accepted"]) == (
                1,
                length + 1,
                length + 1,
            )
        elif kind == 1 and length > 4:
            assert 1 < record["iterations"] < length
            assert 0 < record["accepted"] < record["drafted"]
        elif kind == 2:
            assert record["iterations"] <= 2, "only EOS is not in the draft"
        elif kind == 3:
            assert record["accepted"] <= 1, (
                "an unknown word matches nothing, and EOS the end"
            )
        elif kind == 4:
            assert record["iterations"] == copied[number]["iterations"], (
                "the source is copied"
            )
        assert record["edit_ratio"] == copied[number]["edit_ratio"], (
            "of source and output"
        )


@pytest.mark.parametrize("options", [("aggressive", "--drafts", "whole"), ("iad++",)])
def test_a_shard_reads_the_lines_of_its_own_sentences(
    case: Case, options: tuple[str, ...]
) -> None:
    decoding, *how = options
    found = case.decode(
        decoding,
        case.outputs,
        *"--num-shards 2 --shard-id 1 --batch-size 4".split(),
        *how,
    )
    assert 0 < len(found) < SENTENCES
    assert {record["iterations"] for record in found.values()} == {1}
    assert any(record["edit_ratio"] > 0 for record in found.values()), (
        "no copies of the source"
    )


def test_fairseq_interactive_has_no_data_set(case: Case) -> None:
    (case.folder / "drafts").write_text("ba\n")
    with refused_with("--draft-file: is read by fairseq-generate;"):
        interact(case.model, "iad", "--draft-file", case.folder / "drafts", stdin="ba")


ENGLISH = "Where do you live? I live in Berlin."


def iterations(result: Result) -> list[int]:
    return [sentence.iterations for sentence in result.sentences]


def test_translations_need_few_iterations_with_drafts_of_a_text() -> None:
    """By a model with two vocabularies: a draft of as many sentences, of another number, and of some texts alone."""
    model = load.shipped("mt")
    alone = model.decode(ENGLISH, "iad")
    assert min(iterations(alone)) > 4
    right = model.decode(ENGLISH, drafts=alone.text)
    assert right.text == alone.text
    assert max(iterations(right)) <= 3, (
        "what was learnt of copies of the source is apart"
    )
    joined = model.decode(ENGLISH, "iad", drafts=alone.text.replace("? ", ", "))
    assert joined.text == alone.text
    assert max(iterations(joined)) <= 3
    copied, drafted = model.decode(
        [ENGLISH, ENGLISH], "iad", drafts=[None, alone.text], batch_size=1
    )
    assert max(iterations(drafted)) <= 3 < min(iterations(copied))
    with refused_with("drafts: 1 for 2 texts"):
        model.decode([ENGLISH, ENGLISH], drafts=[alone.text])
    with refused_with(
        r"drafts .* are read by iad, iad\+\+, aggressive only, not by gad"
    ):
        model.decode(ENGLISH, "gad", drafts=alone.text)


def test_aggdec_decode_reads_a_draft_beside_each_line(tmp_path: Path) -> None:
    """By a mode that keeps nearly any draft."""
    (tmp_path / "text").write_text(
        "Where do you live?\n\nI live in Berlin.\nHello.", "utf-8"
    )
    drafts = ["Wo wohnen Sie?", "", "Wir wohnten in Berlin.", "Hallo, Tom."]
    (tmp_path / "drafts").write_text("\n".join(drafts), "utf-8")
    files = f"--input {tmp_path}/text --draft-file {tmp_path}/drafts --output"
    mode = "--cpu --decoding iad++ --top-beta 1000 --tolerance 99 --shard-lines 2"
    command = [*TRANSLATE, *mode.split(), *files.split()]
    run(*command, tmp_path / "out")
    assert outputs(tmp_path / "out") == drafts
    (tmp_path / "drafts").write_text("Wo?\n", "utf-8")
    with refused_with("drafts: has 1 lines; give one --input of as many, not 4"):
        run(*command, tmp_path / "other")
