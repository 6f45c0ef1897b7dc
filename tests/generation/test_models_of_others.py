"""A model that nobody here trained, CTranslate2's transliterator of Arabic names: outputs are those of stock fairseq.

The experiment `outside` makes its checkpoint and its words, and refuses them where fairseq's best outputs are not those
of CTranslate2 itself.
"""

import io
import pickle
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from experiments.experiment import load_module
from experiments.steps import Steps
from fairseq.sequence_generator import SequenceGenerator

import fairseq_aggdec
from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.configs.composing import CONFIGS
from tests.support.helpers import generate_here, parse_generate
from tests.support.oracle import Lists
from tests.support.random_models import random_model
from tests.support.sharing import made_once

LONGEST: dict[str, Any] = {"max_len_a": 0, "max_len_b": 59}


@cache
def experiment() -> ModuleType:
    """The experiment's prepare.py."""
    return load_module(CONFIGS / "outside/prepare.py")


@dataclass
class Transliterator:
    """The model, its words, and what CTranslate2 makes of them."""

    folder: Path
    model: Any
    words: list[list[int]]
    theirs: list[list[int]]

    def search(self, generator: Any, size: int) -> Lists:
        """What a generator finds; `iad` copies the right names with a wrong letter in each third place."""
        drafts = [
            [4 if place % 3 == 2 else one for place, one in enumerate(text[:-1])]
            for text in self.theirs
        ]
        found: Lists = experiment().models.searched(
            generator, self.model.model, self.words, size, drafts
        )
        return found

    @cache  # noqa: B019
    def by_fairseq(self, beam: int, size: int) -> Lists:
        """The lists of stock fairseq's search."""
        return self.search(
            SequenceGenerator(
                [self.model.model], self.model.target, beam_size=beam, **LONGEST
            ),
            size,
        )

    def __hash__(self) -> int:
        return id(self)


@pytest.fixture(scope="module")
def transliterator(
    aggdec_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Transliterator:
    def make(folder: Path) -> Path:
        experiment().transliterator(
            Steps(experiment().EXPERIMENT, aggdec_data, folder), folder
        )
        return folder

    folder = made_once(tmp_path_factory, "transliterator", make)
    data = DataBin.find(folder)
    words, theirs = (
        [one.tolist() for one in side]
        for side in (data.source("test"), data.target("test"))
    )
    model = experiment().models.transliterator(
        aggdec_data / experiment().TRANSLITERATOR
    )
    return Transliterator(folder, model, words, theirs)


@pytest.mark.parametrize("size", [1, 16])
@pytest.mark.parametrize("mode", ["greedy", "iad", "speculative", "aggressive-beam"])
def test_lists_are_fairseqs_alone_and_in_batches(
    transliterator: Transliterator, mode: str, size: int
) -> None:
    kind, beam = (
        (AggressiveBeamGenerator, 5)
        if mode == "aggressive-beam"
        else (AggressiveGenerator, 1)
    )
    source, target = transliterator.model.source, transliterator.model.target
    options: dict[str, Any] = {"beam_size": beam, **LONGEST}
    if mode == "speculative":
        options["block_draft"] = BlockDraftOptions(
            LoadedDrafter(random_model(1, source, target)), 4
        )
    ours = kind.of(
        [transliterator.model.model], target, src_dict=source, decoding=mode, **options
    )
    found, expected = (
        transliterator.search(ours, size),
        transliterator.by_fairseq(beam, size),
    )
    for own, theirs in zip(found, expected, strict=True):
        assert [one["tokens"].tolist() for one in own] == [
            one["tokens"].tolist() for one in theirs
        ]
        scores, stock = (
            torch.stack([one["score"] for one in lists]) for lists in (own, theirs)
        )
        torch.testing.assert_close(scores, stock, atol=1e-5, rtol=0)
    if mode == "iad":
        accepted = sum(sum(best["stats"].accepted) for best, *_ in found)
        assert accepted > len(found)


def test_fairseq_generate_prints_ctranslate2s_names(
    transliterator: Transliterator,
) -> None:
    folder, plugin = transliterator.folder, fairseq_aggdec.__path__[0]
    command = [
        folder,
        "--path",
        folder / "checkpoint.pt",
        "--user-dir",
        plugin,
        "--cpu",
        "--max-len-b",
        59,
    ]
    mode = [
        "--task",
        "aggressive_translation",
        "--decoding",
        "iad",
        "--beam",
        1,
        "--batch-size",
        16,
    ]
    printed = parse_generate(generate_here(*command, *mode))
    names = [
        [transliterator.model.target[one] for one in text[:-1]]
        for text in transliterator.theirs
    ]
    assert [printed[number].tokens for number in range(len(names))] == names


def test_what_cannot_be_installed_or_is_no_plain_data_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        AggdecError,
        match=f"pip install --no-deps --target {tmp_path}/packages ruaccent-predictor==",
    ):
        experiment().install(
            Steps(experiment().EXPERIMENT, tmp_path, tmp_path), tmp_path / "new"
        )
    with pytest.raises(pickle.UnpicklingError, match="only plain data"):
        experiment().PlainUnpickler(io.BytesIO(pickle.dumps(Path))).load()
