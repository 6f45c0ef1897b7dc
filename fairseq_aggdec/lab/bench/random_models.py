"""Writes checkpoints of the papers' model sizes with random weights, so that decoding can be timed without training."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, FairseqEncoderDecoderModel
from fairseq.models.transformer import TransformerModel, base_architecture

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.sizes import Size
from fairseq_aggdec.models.warm_start import encoder_fingerprint

SOURCE = "src"
TARGET = "tgt"
VOCABULARY = 32_000
_COMMON = {
    "share_all_embeddings": True,
    "max_source_positions": 1024,
    "max_target_positions": 1024,
}
_SEED = 1
# weights that drafter and model share
_SHARED = ("encoder.", "decoder.embed_tokens.", "decoder.output_projection.")


@dataclass(frozen=True)
class RandomModel:
    """A folder with dictionaries, as in a data-bin, and checkpoints."""

    folder: Path
    drafter: Path | None
    small: Path | None = None
    """an ordinary model that drafts"""

    @property
    def checkpoint(self) -> Path:
        return self.folder / "model.pt"


def write_random_model(
    folder: Path,
    size: Size,
    drafter_layers: int = 0,
    block_size: int = 25,
    vocabulary: int = VOCABULARY,
    trained_in: torch.dtype = torch.float32,
    small_layers: int = 0,
) -> RandomModel:
    """Write a random model, its dictionaries and, if wanted, random drafters that share its encoder.

    Args:
        folder: created if needed; checkpoints that are there already are kept.
        size: the model's size; a drafter has the same width.
        drafter_layers, small_layers: decoder layers of a block drafter, and of an ordinary model that drafts; 0: none.
        block_size: the block drafter's.
        vocabulary: symbols in the dictionary.
        trained_in: weights are numbers of this precision, as those of a model that was trained in it are.

    Raises:
        AggdecError: a file cannot be written.
    """
    block_drafter = (
        folder / f"drafter-{drafter_layers}-{block_size}.pt" if drafter_layers else None
    )
    made = RandomModel(
        folder,
        block_drafter,
        folder / f"small-{small_layers}.pt" if small_layers else None,
    )
    folder.mkdir(parents=True, exist_ok=True)
    symbols = Dictionary()
    for index in range(vocabulary - len(symbols)):
        symbols.add_symbol(f"w{index}")
    for language in (SOURCE, TARGET):
        symbols.save(str(folder / f"dict.{language}.txt"))
    dictionaries: Any = SimpleNamespace(
        source_dictionary=symbols, target_dictionary=symbols
    )
    if not made.checkpoint.is_file():
        _save(made.checkpoint, *_transformer(size.options(), dictionaries, trained_in))
    if made.small is not None and not made.small.is_file():
        weights, args = _transformer(
            size.options(small_layers), dictionaries, trained_in
        )
        _save(made.small, {**weights, **_shared(made.checkpoint)}, args)
    if made.drafter is not None and not made.drafter.is_file():
        args = Namespace(
            arch="nar_drafter",
            block_size=block_size,
            **{**size.options(drafter_layers), **_COMMON},
        )
        ARCH_CONFIG_REGISTRY["nar_drafter"](args)
        drafter = _random(NarDrafterModel, args, dictionaries).to(trained_in).float()
        drafter.load_state_dict({**drafter.state_dict(), **_shared(made.checkpoint)})
        drafter.encoder_fingerprint.copy_(encoder_fingerprint(drafter.encoder))
        _save(made.drafter, drafter.state_dict(), args)
    return made


def _transformer(
    options: dict[str, Any], dictionaries: Any, trained_in: torch.dtype
) -> tuple[Any, Namespace]:
    """The weights and the options of a random Transformer."""
    args = Namespace(arch="transformer", **{**options, **_COMMON})
    base_architecture(args)
    model = _random(TransformerModel, args, dictionaries)
    vary_outputs(model)
    return model.to(trained_in).float().state_dict(), args


def _shared(checkpoint: Path) -> dict[str, torch.Tensor]:
    """The weights that a drafter takes from its verifier."""
    return {
        name: weight
        for name, weight in read_checkpoint(checkpoint)["model"].items()
        if name.startswith(_SHARED)
    }


def _random(
    kind: type[FairseqEncoderDecoderModel], args: Namespace, dictionaries: Any
) -> Any:
    """A model with fairseq's initial weights, from a fixed seed."""
    torch.manual_seed(_SEED)
    return kind.build_model(args, dictionaries)


def random_sentences(
    count: int, length: int, vocabulary: int = VOCABULARY
) -> list[list[int]]:
    """Random sources: each has `length` ordinary symbols and EOS."""
    symbols = Dictionary()
    rng = Random(_SEED)
    words = range(symbols.nspecial, vocabulary)
    return [[*rng.choices(words, k=length), symbols.eos()] for _ in range(count)]


@torch.no_grad()
def vary_outputs(model: FairseqEncoderDecoderModel) -> None:
    """Change a random model's weights so that its output does not repeat one token for ever.

    An output of one token is no test for copying. The decoder's state is made to depend mostly on the embedding of the
    last token, and the last layer maps it far away from that embedding: with shared embeddings the same token would
    win again otherwise.
    """
    decoder = model.decoder
    # more weight than the positional embeddings, which change little
    decoder.embed_tokens.weight.mul_(2)
    for layer in decoder.layers:
        for projection in (
            layer.self_attn.out_proj,
            layer.encoder_attn.out_proj,
            layer.fc2,
        ):
            # less weight for what all tokens of a sentence have in common
            projection.weight.mul_(0.1)
    last = decoder.layers[-1].fc2.weight
    # without the mean, which all tokens have in common, and so large that the embedding of the token counts little
    last.sub_(last.mean(dim=1, keepdim=True)).mul_(1000)


def _save(path: Path, weights: Mapping[str, torch.Tensor], args: Namespace) -> None:
    state = {
        "args": None,
        "cfg": {"model": args, "task": {"_name": "translation"}},
        "model": weights,
        "optimizer_history": [{"criterion_name": "", "best_loss": None}],
        "extra_state": {},
    }
    try:
        with written_whole(path) as partial:
            torch.save(state, partial)
    except RuntimeError as error:
        raise AggdecError(
            f"{path}: cannot be written ({error}); name a folder on another disk by --keep"
        ) from error
