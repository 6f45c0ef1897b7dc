"""Block drafters beside a verifier: loading one, refusing one that does not fit, running it."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel, build_model
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.tasks.translation import TranslationTask
from torch import Tensor

from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_encoder import BlockEncoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.supported_models import unsupported_encoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import encoder_fingerprint

logger = logging.getLogger(__name__)


class LoadedDrafter:
    """A block drafter at work: on the verifier's device and in its precision, with its encoder where it is the same."""

    def __init__(self, model: NarDrafterModel, name: str = "the drafter") -> None:
        """
        Args:
            model: moved and converted in place when it is first used.
            name: what messages call it.
        """
        self.model = model
        model.eval()  # returns nothing once fairseq has made a model ready for generation
        model.requires_grad_(False)
        self.name = name
        self._engine: DraftDecoder | None = None
        self._encoder: BlockEncoder | None = None
        self._verifiers: list[FairseqEncoderDecoderModel] = []
        self._shared: int | None = None

    def block_size(self, wanted: int) -> int:
        """The number of tokens to draft: `wanted`, or what the drafter was trained for where that is 0.

        Raises:
            AggdecError: more than it was trained for.
        """
        if wanted > self.model.block_size:
            raise AggdecError(
                f"--block-size {wanted}: {self.name} was trained for blocks of {self.model.block_size}; give no more"
            )
        return wanted or self.model.block_size

    def start(
        self,
        net_input: dict[str, Any],
        dtype: torch.dtype,
        verifiers: Sequence[FairseqEncoderDecoderModel] = (),
        encoder_outs: Sequence[dict[str, Any]] = (),
        arithmetic: Arithmetic = AS_THE_MODEL,
    ) -> DraftDecoder:
        """Take a new batch.

        Args:
            net_input: as fairseq's encoder takes it.
            dtype: of the verifier's weights.
            verifiers: the models whose encoders have read the batch; none where the drafter works alone.
            encoder_outs: what their encoders returned for the batch.
            arithmetic: of the drafter's layers; the same in every call.

        Raises:
            AggdecError: the drafter has something that the engine lacks, or the precision is not to be had here.
        """
        weight = self.model.decoder.embed_tokens.weight
        device = net_input["src_tokens"].device
        if (weight.device, weight.dtype) != (device, dtype):
            self.model.to(device=device, dtype=dtype)
        if self._engine is None or not self._engine.is_current():
            try:
                self._engine = DraftDecoder(self.model.decoder, arithmetic)
            except ValueError as error:
                raise AggdecError(f"{self.name} cannot be used for decoding: {error}") from error
            self._encoder = None
        if verifiers and list(verifiers) != self._verifiers:
            self._verifiers = list(verifiers)
            self._shared = _same_encoder(self.model.encoder_fingerprint.cpu(), verifiers)
            which = "encodes the source itself" if self._shared is None else "shares the verifier's encoder"
            logger.info(f"{self.name} {which}")
        if verifiers and self._shared is not None:
            self._engine.start(encoder_outs[self._shared])
        else:
            self._engine.start_later(lambda wanted: self._encode(net_input, wanted, arithmetic))
        return self._engine

    def _encode(self, net_input: dict[str, Any], rows: Tensor | None, arithmetic: Arithmetic) -> dict[str, Any]:
        """What the drafter's own encoder says of these rows of a batch; None: all."""
        encoder = self.model.encoder
        if rows is not None:
            net_input = {name: value[rows] for name, value in net_input.items() if isinstance(value, Tensor)}
        if self._encoder is None and unsupported_encoder(encoder) is None:
            self._encoder = BlockEncoder(encoder, arithmetic)
        if self._encoder is None:
            return encoder.forward_torchscript(net_input)
        return self._encoder(net_input["src_tokens"])

    def forget_verifiers(self) -> None:
        """Their weights have changed."""
        self._verifiers = []


def _same_encoder(recorded: Tensor, verifiers: Sequence[FairseqEncoderDecoderModel]) -> int | None:
    """The number of the verifier whose encoder has a drafter's recorded fingerprint, where there is one."""
    if not bool(recorded.any()):
        return None
    for number, verifier in enumerate(verifiers):
        encoder = verifier.encoder
        if isinstance(encoder, TransformerEncoderBase) and torch.equal(encoder_fingerprint(encoder), recorded):
            return number
    return None


def load_drafter(path: str, task: TranslationTask, verifiers: Sequence[Any] = ()) -> LoadedDrafter:
    """Load a drafter's checkpoint for the dictionaries of a task.

    Args:
        path: a checkpoint of fairseq-train, or one that aggdec export has written, with or without what the drafter
            shares with its verifier.
        task: for its dictionaries.
        verifiers: where to take what is missing, for a drafter that was exported without it.

    Raises:
        AggdecError: the file cannot be read, is no drafter, or was trained with other dictionaries or for another
            verifier.
    """
    state = checkpoint_utils.load_checkpoint_to_cpu(path)  # brings what older versions saved up to date
    if "decoder.mask_embedding" not in state["model"]:
        raise AggdecError(
            f"--drafter-path {path}: an ordinary model, not a block drafter (--arch nar_drafter). Are --path and "
            "--drafter-path swapped? --path takes the verifier"
        )
    _check_dictionaries(path, state, task)
    settings = state["cfg"].model
    model = build_model(settings, task, from_checkpoint=True)  # the task's own would build a generator for --eval-bleu
    weights = state["model"]
    missing = [name for name in model.state_dict() if name not in weights]
    if missing:
        weights = {**_shared_weights(path, weights["encoder_fingerprint"], missing, verifiers), **weights}
    model.load_state_dict(weights, strict=True, model_cfg=settings)
    return LoadedDrafter(model, f"the drafter {path}")


def _shared_weights(
    path: str, fingerprint: Tensor, names: Sequence[str], verifiers: Sequence[Any]
) -> dict[str, Tensor]:
    """What a drafter was exported without, from the verifier that has the same."""
    number = _same_encoder(fingerprint, verifiers)
    theirs = {} if number is None else verifiers[number].state_dict()
    unknown = [name for name in names if name not in theirs]
    if unknown:
        raise AggdecError(
            f"--drafter-path {path}: lacks {len(names)} weights ({', '.join(names[:3])} ...) that it shares with the "
            "verifier it was trained for, and --path is another model: give that verifier"
        )
    return {name: theirs[name] for name in names}


def _check_dictionaries(path: str, state: dict[str, Any], task: TranslationTask) -> None:
    """Raises `AggdecError` where a drafter's dictionaries are known not to be the task's."""
    languages = (task.cfg.source_lang, task.cfg.target_lang)
    dictionaries = (task.source_dictionary, task.target_dictionary)
    for side, part, language, dictionary in zip(
        ("source", "target"), ("encoder", "decoder"), languages, dictionaries, strict=True
    ):
        recorded = _recorded_symbols(path, state, side, language)
        if recorded is not None:
            _compare_symbols(f"--drafter-path {path}", side, *recorded, dictionary)
        embedding = state["model"].get(f"{part}.embed_tokens.weight")
        if embedding is not None and embedding.size(0) != len(dictionary):
            raise AggdecError(
                f"--drafter-path {path}: made for a {side} dictionary of {embedding.size(0)} symbols, and that of the "
                f"data folder has {len(dictionary)}: drafter and verifier need the same dictionaries"
            )


def refuse_drafters(models: Sequence[Any], path: str | None) -> None:
    """Name the mistake where drafters were given as what they cannot be, verifiers.

    Raises:
        AggdecError: one of the models is a drafter.
    """
    paths = path.split(":") if path else []
    for number, model in enumerate(models):
        if isinstance(model, NarDrafterModel):
            which = f"--path {paths[number]}" if len(paths) == len(models) else "--path"
            raise AggdecError(
                f"{which}: a block drafter, not a verifier. Give the verifier as --path and the drafter as "
                "--drafter-path; the drafter alone decodes under --decoding nar"
            )


def only_drafter(models: Sequence[Any], path: str | None) -> NarDrafterModel:
    """The drafter that was given as --path, to decode alone.

    Raises:
        AggdecError: it is none, or there are several models.
    """
    if len(models) == 1 and isinstance(models[0], NarDrafterModel):
        return models[0]
    raise AggdecError(
        f"--decoding nar takes one block drafter, as --drafter-path or as --path, and --path {path or ''} is "
        + ("several models" if len(models) > 1 else "an ordinary model")
    )


def _recorded_symbols(
    path: str, state: dict[str, Any], side: str, language: str | None
) -> tuple[str, list[str]] | None:
    """The dictionary that a checkpoint was trained with, where it is known, and the place where it stands."""
    recorded = (state.get("task_state") or {}).get(f"{side}_symbols")
    if recorded:
        return "recorded in the checkpoint", list(recorded)
    named = (state["cfg"].get("task") or {}).get(f"{side}_lang")
    file = Path(path).parent / f"dict.{named or language}.txt"
    if file.is_file():
        return str(file), Dictionary.load(str(file)).symbols
    return None


def _compare_symbols(option: str, side: str, where: str, symbols: list[str], dictionary: Dictionary) -> None:
    """Raises `AggdecError` at the first symbol that differs from the task's dictionary."""
    ours = dictionary.symbols
    if symbols == ours:
        return
    number = next((n for n, pair in enumerate(zip(symbols, ours, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        difference = f"{len(symbols)} symbols there, {len(ours)} here"
    else:
        difference = f"symbol {number} is '{symbols[number]}' there and '{ours[number]}' here"
    raise AggdecError(
        f"{option}: its {side} dictionary ({where}) is not that of the data folder: {difference}. Drafter and verifier "
        "need the same dictionaries"
    )
