"""Small random non-autoregressive models of fairseq, and checkpoints of them as fairseq-train could have written."""

from argparse import Namespace
from pathlib import Path

import torch
from experiments.nat_start import TABLES
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

from tests.support.random_models import draw_weights, task_of

ARCHITECTURES = tuple(TABLES)
LENGTH_PREDICTORS = tuple(
    name for name, tables in TABLES.items() if "embed_length" in tables
)


def _nat_args(architecture: str) -> Namespace:
    """Options of a model of two layers."""
    args = Namespace(
        arch=architecture, task="translation_lev", share_all_embeddings=True, label_smoothing=0.1, early_exit="2,1,2",
        encoder_embed_dim=16, encoder_ffn_embed_dim=32, encoder_layers=2, encoder_attention_heads=2,
        decoder_embed_dim=16, decoder_ffn_embed_dim=32, decoder_layers=2, decoder_attention_heads=2,
        max_source_positions=128, max_target_positions=256,
    )  # fmt: skip
    args.pred_length_offset = architecture == "nonautoregressive_transformer"
    ARCH_CONFIG_REGISTRY[architecture](args)
    return args


def write_random_nat(path: Path, architecture: str, dictionary: Dictionary) -> Path:
    """Writes a checkpoint; returns the path."""
    torch.manual_seed(1)
    args = _nat_args(architecture)
    model = ARCH_MODEL_REGISTRY[architecture].build_model(args, task_of(dictionary))
    draw_weights(model)
    if hasattr(model.decoder, "embed_length"):
        # lengths near the source's, which the means of encoder states at random would not give
        weight = model.decoder.embed_length.weight
        with torch.no_grad():
            weight[: 120 if args.pred_length_offset else 4] = 0
            weight[140 if args.pred_length_offset else 20 :] = 0
    state = {
        "args": None,
        "cfg": {"model": args, "task": {"_name": "translation_lev"}},
        "model": model.state_dict(),
        "optimizer_history": [{"criterion_name": "", "best_loss": None}],
        "extra_state": {},
    }
    torch.save(state, path)
    return path
