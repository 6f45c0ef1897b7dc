"""Checkpoints whose stored options are code: refused by the option's name at every entrance, and nothing runs."""

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
    """A checkpoint with options that are code, which would make the file `executed`."""

    def __init__(self, folder: Path, toy: ToyModel) -> None:
        self.path = folder / "hostile.pt"
        self.executed = folder / "executed"
        self.code = f"[__import__('pathlib').Path({str(self.executed)!r}).touch()]"
        self._state = checkpoints.read_checkpoint(toy.checkpoint)

    def store(self, old_style: bool = False, **options: Any) -> None:
        """Writes the checkpoint, with these options of its model; otherwise it would pass for a drafter, too."""
        model = Namespace(**{**vars(self._state["cfg"]["model"]), **options})
        stored: Any = {"args": model, "cfg": None}
        if not old_style:
            stored = {"cfg": {**self._state["cfg"], "model": model}}
        weights = {**self._state["model"], "decoder.mask_embedding": torch.zeros(1)}
        torch.save({**self._state, **stored, "model": weights}, self.path)


@pytest.fixture
def intruder(tmp_path: Path, toy_model_dir: ToyModel) -> Intruder:
    return Intruder(tmp_path, toy_model_dir)


@pytest.fixture
def entrances(
    intruder: Intruder, toy_model_dir: ToyModel
) -> dict[str, Callable[[], object]]:
    """The ways by which a checkpoint comes in."""
    path = str(intruder.path)
    folder = intruder.path.parent
    data = str(toy_model_dir.data)
    generate = [data, "--task", "aggressive_translation", "--cpu", "--user-dir", PLUGIN]
    drafting = [*generate, "--decoding", "gad", "--path", toy_model_dir.checkpoint]
    distill = ["distill", data, str(folder / "out"), "--cpu", "--teacher", path]
    return {
        "--path": lambda: generate_here(*generate, "--path", path),
        "--drafter-path": lambda: generate_here(*drafting, "--drafter-path", path),
        "--teacher": lambda: aggdec(distill),
        "from_pretrained": lambda: TransformerModel.from_pretrained(
            str(folder), "hostile.pt", data
        ),
        "fairseq": lambda: checkpoint_utils.load_model_ensemble_and_task([path]),
        "read_checkpoint": lambda: checkpoints.read_checkpoint(path),
    }


@pytest.mark.parametrize(
    "option, old_style",
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
    refused = f'checkpoint {intruder.path}: refused: its option {place} holds "[__imp'
    for name, enter in entrances.items():
        with pytest.raises(CheckpointError) as caught:
            enter()
        assert str(caught.value).startswith(refused), name
        assert "nothing was executed" in str(caught.value)
        assert not intruder.executed.exists(), name


@pytest.mark.parametrize("value", ["${oc.create:'x: 1'}", b"print()"])
def test_code_is_refused_within_interpolations_and_other_types(
    intruder: Intruder, value: object
) -> None:
    """OmegaConf would make a new option of the first two; `eval` takes bytes."""
    intruder.store(adaptive_softmax_cutoff=value)
    refused = r"option cfg\.model\.adaptive_softmax_cutoff holds"
    with pytest.raises(CheckpointError, match=refused):
        checkpoint_utils.load_checkpoint_to_cpu(str(intruder.path))


def test_literals_pass_and_code_does_not() -> None:
    literals = ["", "8,12", " [1, 2]", "(0.9, 0.98)", "True", "{'name': 'x'}"]
    code = ["f()", "[x for x in y]", "a.b", "f'{a}'", "lambda: 0", "[1][0]", "9**9"]
    for text in (*literals, "[(512, 3)] * 20 + [(768, -3)]"):
        assert is_plain(text), text
    for text in (*code, "(" * 10**5, "\0", "1;2"):
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

    def pack(name: str) -> None:
        member = tarfile.TarInfo(name)
        if name.endswith("link"):
            member.type = tarfile.SYMTYPE
            member.linkname = str(tmp_path)
        with tarfile.open(archive, "w:gz") as file:
            file.addfile(tarfile.TarInfo("model/dict.txt"))
            file.addfile(member)

    odd = name.format(folder=tmp_path)
    pack(odd)
    refused = f"archive {archive}: refused: '{odd}'"
    with pytest.raises(CheckpointError, match=refused):
        file_utils.load_archive_file(str(archive))
    assert [path.name for path in tmp_path.iterdir()] == ["model.tar.gz"]
    pack("model/model.pt")
    file_utils.load_archive_file(str(archive))
    assert sorted(path.name for path in archive.iterdir()) == ["dict.txt", "model.pt"]
