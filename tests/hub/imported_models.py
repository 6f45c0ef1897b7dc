"""The small models of the folder `models`, imported, and what transformers gave for them."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec import load
from fairseq_aggdec.hub.importing import import_checkpoint
from fairseq_aggdec.lab.verify.against_transformers import InTheirIds

MODELS = Path(__file__).parent / "models"
NAMES = sorted(path.parent.name for path in MODELS.glob("*/expected.json"))
ENGLISH = ("en_XX", "en", "eng_Latn", ">>eng<<")
T5 = ("byt5", "flan_t5", "madlad", "mt5", "t5")
PROMPTS = {"flan_t5": "Fix typos: ", "madlad": "<2de> "}
"""of models that read one before each text"""
LOG_PROBABILITY = 1e-4
"""largest difference of a token's, in nats"""


def copied(name: str, folder: Path, changes: dict[str, Any]) -> Path:
    """A copy of a model's folder with files deleted (None), cut to so many bytes, or with other fields of their JSON.

    A change of another type is the file's only weight.
    """
    shutil.copytree(MODELS / name, folder)
    for file, change in changes.items():
        path = folder / file
        if change is None:
            path.unlink()
        elif isinstance(change, int):
            path.write_bytes(path.read_bytes()[:change])
        elif isinstance(change, dict):
            path.write_text(
                json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8"
            )
        else:
            torch.save({"weight": change}, path)
    return folder


class Imported:
    """An imported model, loaded for each pair of languages that transformers' names ask for ("": the model's own)."""

    def __init__(self, name: str, folder: Path) -> None:
        """`folder`: to be made."""
        import_checkpoint(MODELS / name, folder, PROMPTS.get(name, ""))
        self.name = name
        self.folder = folder
        self.rows: list[dict[str, Any]] = json.loads(
            (MODELS / name / "expected.json").read_text("utf-8")
        )
        """what transformers gives for a few sentences"""
        self.forward = [row for row in self.rows if row["target_lang"] not in ENGLISH]
        """those of one pair of languages"""
        self._loaded: dict[tuple[str, ...], InTheirIds] = {}

    def of(self, row: dict[str, Any], **options: Any) -> InTheirIds:
        pair = tuple(row[side].strip("<>") for side in ("source_lang", "target_lang"))
        if pair not in self._loaded or options:
            source, target = (name or None for name in pair)
            # whose inputs do not name their own language
            if self.name == "marian_multi":
                source = "eng" if target == "deu" else "deu"
            model = load.hub(self.folder, source, target, **options)
            self._loaded[pair] = InTheirIds(MODELS / self.name, model)
        return self._loaded[pair]


def differences(
    imported: Imported, rows: Sequence[dict[str, Any]], size: int
) -> Iterator[str]:
    """What greedy search in batches of `size` does otherwise than transformers did, as `rows` say."""
    for languages in {row["target_lang"] for row in rows}:
        own = [row for row in rows if row["target_lang"] == languages]
        model = imported.of(own[0])
        texts = [row["text"] for row in own]
        for row, tokens, found in zip(
            own, model.inputs(texts), model.outputs(texts, size), strict=True
        ):
            if tokens != row["input"]:
                yield f"{row['text']!r}: the encoder reads {tokens} in place of {row['input']}"
            elif row["output"][1:] not in (found["output"], found["output"][:-1]):
                # fairseq ends what is cut short
                yield f"{row['text']!r}: the output is {found['output']} in place of {row['output'][1:]}"
            else:
                scores = zip(
                    found["positional_scores"].tolist(),
                    row["log_probabilities"],
                    strict=False,
                )
                if (
                    apart := max(abs(one - other) for one, other in scores)
                ) > LOG_PROBABILITY:
                    yield f"{row['text']!r}: a log-probability differs by {apart:.1e}"
