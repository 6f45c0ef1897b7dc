"""Checkpoints whose stored options are code: refused by the option's name wherever they come in, and nothing runs."""

import tarfile
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils, file_utils
from fairseq.models.transformer import TransformerModel

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat import checkpoints
from fairseq_aggdec.compat.checkpoints import CheckpointError
from fairseq_aggdec.compat.stored_options import is_plain
from tests.support.helpers import PLUGIN, ToyModel, generate_here


class Intruder:
    """A checkpoint whose options would make a file, and whether they did."""

    def __init__(self, folder: Path, toy: ToyModel) -> None:
        self.path = folder / "hostile.pt"
        self.folder, self.data, self.good = folder, toy.data, toy.checkpoint
        self._made = folder / "executed"
        self.code = f"[__import__('pathlib').Path({str(self._made)!r}).touch()]"
        self._state = checkpoints.read_checkpoint(toy.checkpoint)

    def store(self, old_style: bool = False, **options: Any) -> None:
        """Writes the checkpoint, with these options of its model; otherwise it would pass for a drafter, too."""
        model = Namespace(**{**vars(self._state["cfg"]["model"]), **options})
        stored = (
            {"args": model, "cfg": None}
            if old_style
            else {"cfg": {**self._state["cfg"], "model": model}}
        )
        weights = {**self._state["model"], "decoder.mask_embedding": torch.zeros(1)}
        torch.save({**self._state, **stored, "model": weights}, self.path)

    def ran(self) -> bool:
        """Whether the code has run since the last question."""
        ran = self._made.exists()
        self._made.unlink(missing_ok=True)
        return ran


@pytest.fixture
def intruder(tmp_path: Path, toy_model_dir: ToyModel) -> Intruder:
    return Intruder(tmp_path, toy_model_dir)


@pytest.fixture
def entrances(intruder: Intruder) -> dict[str, Callable[[], object]]:
    """The ways by which a checkpoint comes in."""
    path, data = str(intruder.path), intruder.data
    generate = [
        data,
        "--task",
        "aggressive_translation",
        "--cpu",
        "--user-dir",
        PLUGIN,
        "--path",
    ]
    return {
        "--path": lambda: generate_here(*generate, path),
        "--drafter-path": lambda: generate_here(
            *generate, intruder.good, "--decoding", "gad", "--drafter-path", path
        ),
        "--teacher": lambda: aggdec(
            [
                "distill",
                str(data),
                str(intruder.folder / "out"),
                "--teacher",
                path,
                "--cpu",
            ]
        ),
        "from_pretrained": lambda: TransformerModel.from_pretrained(
            str(intruder.folder), "hostile.pt", str(data)
        ),
        "fairseq's loader": lambda: checkpoint_utils.load_model_ensemble_and_task(
            [path]
        ),
        "read_checkpoint": lambda: checkpoints.read_checkpoint(path),
    }


@pytest.mark.parametrize(
    ("option", "old_style"),
    [("decoder_xformers_att_config", False), ("adaptive_softmax_cutoff", True)],
)
def test_code_is_refused_at_every_entrance(
    intruder: Intruder,
    entrances: dict[str, Callable[[], object]],
    option: str,
    old_style: bool,
) -> None:
    intruder.store(old_style, **{option: intruder.code})
    place = f"args.{option}" if old_style else f"cfg.model.{option}"
    for name, enter in entrances.items():
        with pytest.raises(CheckpointError) as caught:
            enter()
        assert (
            f'checkpoint {intruder.path}: refused: its option {place} holds "[__import__'
            in str(caught.value)
        ), name
        assert "nothing was executed" in str(caught.value)
        assert not intruder.ran(), name


@pytest.mark.parametrize("value", ["${oc.create:'x: 1'}", b"print()"])
def test_code_is_refused_behind_interpolations_and_other_types(
    intruder: Intruder, value: object
) -> None:
    """OmegaConf would make a new option of the first two; `eval` takes bytes."""
    intruder.store(adaptive_softmax_cutoff=value)
    with pytest.raises(
        CheckpointError, match=r"option cfg\.model\.adaptive_softmax_cutoff holds"
    ):
        checkpoint_utils.load_checkpoint_to_cpu(str(intruder.path))


def test_literals_and_what_fairseq_makes_of_them_pass() -> None:
    for text in (
        "",
        "8,12",
        " [1, 2]",
        "(0.9, 0.98)",
        "[(512, 3)] * 20 + [(768, -3)]",
        "True",
        "{'name': 'x'}",
    ):
        assert is_plain(text), text
    for text in (
        "f()",
        "[x for x in y]",
        "a.b",
        "f'{a}'",
        "lambda: 0",
        "[1][0]",
        "9**9",
        "(" * 10**5,
        "\0",
        "1;2",
    ):
        assert not is_plain(text), text


@pytest.mark.parametrize(
    "name", ["model/../../outside", "{folder}/outside", "model/link"]
)
def test_an_archive_writes_nothing_outside_of_its_folder(
    tmp_path: Path,
    name: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What from_pretrained is given may be one; a sound one becomes the folder that it holds."""
    # fairseq leaves it if refused
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("unpacked")))
    archive = tmp_path / "model.tar.gz"
    for odd in (name.format(folder=tmp_path), "model/model.pt"):
        with tarfile.open(archive, "w:gz") as file:
            member = tarfile.TarInfo(odd)
            if odd.endswith("link"):
                member.type, member.linkname = tarfile.SYMTYPE, str(tmp_path)
            file.addfile(tarfile.TarInfo("model/dict.txt"))
            file.addfile(member)
        if odd != "model/model.pt":
            with pytest.raises(
                CheckpointError, match=f"archive {archive}: refused: '{odd}'"
            ):
                file_utils.load_archive_file(str(archive))
            assert [path.name for path in tmp_path.iterdir()] == ["model.tar.gz"]
    file_utils.load_archive_file(str(archive))
    assert sorted(path.name for path in archive.iterdir()) == ["dict.txt", "model.pt"]
