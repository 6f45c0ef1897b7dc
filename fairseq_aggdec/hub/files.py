"""The files of a Hugging Face checkpoint: JSON, and weights, of which no code is run."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec import structured_files
from fairseq_aggdec.errors import AggdecError

Fields = dict[str, Any]
"""the content of a JSON file, or options, by name"""
Weights = dict[str, Tensor]
"""by name"""

_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""the first that exists is read; an index names the file of each weight"""
_ADVICE = "download it again"
_COMPUTED = (".version", "embed_positions.weights")
"""ends of the names of entries that transformers does not read"""


def read_json(folder: Path, *names: str, optional: bool = False) -> Fields:
    """The content of JSON files without entries that are null; an optional file need not be there.

    Raises:
        AggdecError: a file is not there, or is not JSON.
    """
    content: Fields = {}
    for path in map(folder.joinpath, names):
        if path.is_file():
            content |= structured_files.read(path, Fields, _ADVICE)
        elif not optional:
            raise AggdecError(
                f"{path}: no such file; name the folder of a checkpoint in Hugging Face's format"
            )
    return {field: value for field, value in content.items() if value is not None}


def read_weights(folder: Path) -> Weights:
    """All weights of a checkpoint in the precision of the file, by their names without `model.`, which not all have.

    Raises:
        AggdecError: there are none, a file is missing or damaged, or holds something other than weights; they are
            quantised.
    """
    name = next((name for name in _WEIGHTS if (folder / name).is_file()), None)
    if name is None:
        raise AggdecError(
            f"{folder}: has no weights; download its {_WEIGHTS[0]} or {_WEIGHTS[2]}"
        )
    files = {name}
    if name.endswith(".json"):
        places = read_json(folder, name).get("weight_map")
        if not isinstance(places, dict):
            raise AggdecError(
                f"{folder / name}: its weight_map does not name a file for each weight; {_ADVICE}"
            )
        # beside the index, and nowhere else
        files = {Path(str(file)).name for file in places.values()}
    weights = {
        name: weight
        for file in sorted(files)
        for name, weight in _read(folder / file).items()
    }
    for name, weight in weights.items():
        if weight.element_size() == 1:
            raise AggdecError(
                f"{folder}: is quantised ({name}: {weight.dtype}); import the original checkpoint"
            )
        if weight.isnan().any():
            raise AggdecError(f"{folder}: {name}: holds NaN; {_ADVICE}")
    return {
        name.removeprefix("model."): weights[name]
        for name in weights
        if not name.endswith(_COMPUTED)
    }


def _read(path: Path) -> Weights:
    if not path.is_file():
        raise AggdecError(f"{path}: no such file; {_ADVICE}")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except ImportError:
        raise AggdecError(
            f"{path}: needs the library safetensors: pip install 'fairseq-aggdec[hub]'"
        ) from None
    except Exception:
        # of many types; PyTorch's message tells how to run the file's code
        weights = None
    if not isinstance(weights, dict) or not all(
        isinstance(weight, Tensor) for weight in weights.values()
    ):
        raise AggdecError(
            f"{path}: is damaged, or holds more than weights, of which no code was run; {_ADVICE}"
        )
    return weights
