"""Loading a drafter from its checkpoint; models that are no drafter or do not fit the verifier are refused."""

import logging
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.models import build_model
from torch import Tensor

from fairseq_aggdec.compat.checkpoints import loading_models
from fairseq_aggdec.engine.drafter import LoadedDrafter, same_encoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import dictionary_file
from fairseq_aggdec.generation.modes import BLOCK_MODEL, SMALL_MODEL
from fairseq_aggdec.models.nar_drafter import NarDrafterModel

logger = logging.getLogger(__name__)


def load_drafter(path: str, task: Any, verifiers: Sequence[Any] = ()) -> LoadedDrafter:
    """Load the checkpoint of a block drafter, or of an ordinary encoder-decoder.

    `task` has dictionaries and `languages`.

    Weights that a block drafter shares with the verifier may be missing: then they are those of `verifiers`. Raises
    `AggdecError` where the file cannot be read or holds no such model, or the model was trained with other dictionaries
    or for another verifier.
    """
    # upgrades checkpoints of older versions
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    weights = state["model"]
    if not any(
        name.startswith(("encoder.", "encoder_fingerprint")) for name in weights
    ):
        several = any(name.startswith("models.") for name in weights)
        kind = (
            "several encoder-decoders, one for each pair of languages"
            if several
            else "no encoder-decoder"
        )
        raise AggdecError(
            f"--drafter-path {path}: {kind}; a drafter is one encoder-decoder"
        )
    _check_dictionaries(path, state, task)
    settings = state["cfg"].model
    # not task.build_model, which would also build a generator for --eval-bleu
    with loading_models():
        model = build_model(settings, task, from_checkpoint=True)
    missing = [name for name in model.state_dict() if name not in weights]
    if missing and "encoder_fingerprint" in weights:
        weights = {
            **_shared_weights(path, weights["encoder_fingerprint"], missing, verifiers),
            **weights,
        }
    model.load_state_dict(weights, strict=True, model_cfg=settings)
    sizes = [f"{_weights_of(one) / 1e6:.1f}" for one in (model, *verifiers)]
    logger.info(
        f"--drafter-path {path}: {sizes[0]} million weights; of the verifier {' + '.join(sizes[1:]) or '?'}"
    )
    return LoadedDrafter(model, f"the drafter {path}")


def kind_of(drafter: LoadedDrafter) -> str:
    """`BLOCK_MODEL` or `SMALL_MODEL`."""
    return SMALL_MODEL if drafter.is_autoregressive else BLOCK_MODEL


def _weights_of(model: Any) -> int:
    return sum(weight.numel() for weight in model.parameters())


def _shared_weights(
    path: str, fingerprint: Tensor, names: Sequence[str], verifiers: Sequence[Any]
) -> dict[str, Tensor]:
    """Take the weights missing in an exported drafter from the verifier with the same encoder."""
    index = same_encoder(fingerprint, verifiers)
    theirs = {} if index is None else verifiers[index].state_dict()
    unknown = [name for name in names if name not in theirs]
    if unknown:
        raise AggdecError(
            f"--drafter-path {path}: lacks {len(names)} weights ({', '.join(names[:3])} ...) that it shares with the "
            "verifier it was trained for, and --path is another model, or was converted to bfloat16 before its drafter "
            "was loaded: give that verifier as it was saved"
        )
    return {name: theirs[name] for name in names}


def _check_dictionaries(path: str, state: dict[str, Any], task: Any) -> None:
    """Raise `AggdecError` where the drafter's recorded dictionaries differ from the task's."""
    for side, part, language, dictionary in (
        ("source", "encoder", task.languages[0], task.source_dictionary),
        ("target", "decoder", task.languages[1], task.target_dictionary),
    ):
        if dictionary is None:  # of speech
            continue
        embedding = state["model"].get(f"{part}.embed_tokens.weight")
        recorded = _recorded_symbols(path, state, side, language)
        if recorded is not None:
            where, symbols = recorded
            if embedding is not None and embedding.size(0) == len(dictionary):
                # tasks of many languages add symbols to what a file holds
                symbols = symbols + dictionary.symbols[len(symbols) :]
            if symbols != dictionary.symbols:
                pairs = enumerate(
                    zip_longest(symbols, dictionary.symbols, fillvalue="")
                )
                symbol, (theirs, ours) = next(
                    (place, pair) for place, pair in pairs if pair[0] != pair[1]
                )
                raise AggdecError(
                    f"--drafter-path {path}: its {side} dictionary ({where}) is not that of the data folder: symbol "
                    f"{symbol} is '{theirs}' there and '{ours}' here. Drafter and verifier need the same dictionaries"
                )
        if embedding is not None and embedding.size(0) != len(dictionary):
            raise AggdecError(
                f"--drafter-path {path}: made for a {side} dictionary of {embedding.size(0)} symbols, and that of the "
                f"data folder has {len(dictionary)}: drafter and verifier need the same dictionaries"
            )


def refuse_drafters(models: Sequence[Any], path: str | None) -> None:
    """Raise `AggdecError` where a model given as verifier is a drafter; the message names its path."""
    paths = path.split(":") if path else []
    for index, model in enumerate(models):
        if isinstance(model, NarDrafterModel):
            which = f"--path {paths[index]}" if len(paths) == len(models) else "--path"
            raise AggdecError(
                f"{which}: a block drafter, not a verifier. Give the verifier as --path and the drafter as "
                "--drafter-path; the drafter alone decodes under --decoding nar"
            )


def only_drafter(models: Sequence[Any], path: str | None) -> NarDrafterModel:
    """The drafter given as --path, which decodes alone; raises `AggdecError` where it is none, or one of several."""
    if len(models) == 1 and isinstance(models[0], NarDrafterModel):
        return models[0]
    raise AggdecError(
        f"--decoding nar takes one block drafter, as --drafter-path or as --path, and --path {path or ''} is "
        + ("several models" if len(models) > 1 else "an ordinary model")
    )


def _recorded_symbols(
    path: str, state: dict[str, Any], side: str, language: str | None
) -> tuple[str, list[str]] | None:
    """The place and the symbols of the dictionary that a checkpoint was trained with; None where it is unknown."""
    recorded = (state.get("task_state") or {}).get(f"{side}_symbols")
    if recorded:
        return "recorded in the checkpoint", list(recorded)
    # a Namespace where the task has `add_args`
    named = getattr(state["cfg"].get("task"), f"{side}_lang", None)
    file = dictionary_file(Path(path).parent, side, named or language)
    return (str(file), Dictionary.load(str(file)).symbols) if file.is_file() else None
