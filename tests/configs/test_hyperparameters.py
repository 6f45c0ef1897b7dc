"""The numbers of the configurations, against the papers' tables as they are written down here."""

from typing import Any

import pytest

from tests.configs.composing import compose

BASE = {"embed_dim": 512, "ffn_embed_dim": 2048, "attention_heads": 8, "layers": 6}  # papers/000 §4.2.1
BIG = {"embed_dim": 1024, "ffn_embed_dim": 4096, "attention_heads": 16, "layers": 6}  # papers/000 §4.1.1

# papers/000 Table 13 and papers/001 Table 10, left
VERIFIER = {
    "distributed_training.distributed_world_size": 8,
    "criterion._name": "label_smoothed_cross_entropy",
    "criterion.label_smoothing": 0.1,
    "dataset.max_tokens": 20000,
    "optimization.update_freq": [4],
    "task.max_source_positions": 1000,
    "task.max_target_positions": 1000,
    "optimizer._name": "adam",
    "optimization.lr": [1e-3],
    "optimizer.adam_betas": "(0.9,0.99)",
    "lr_scheduler._name": "inverse_sqrt",
    "lr_scheduler.warmup_init_lr": 1e-7,
    "optimizer.weight_decay": 0.00001,
    "optimization.clip_norm": 3.0,
    "lr_scheduler.warmup_updates": 4000,
    "optimization.max_update": 100_000,
    "optimization.max_epoch": 1000,
}
# the same tables, right
DRAFTER = {
    "distributed_training.distributed_world_size": 8,
    "criterion._name": "glancing_block_loss",
    "criterion.label_smoothing": 0.1,
    "dataset.max_tokens": 4096,
    "optimization.update_freq": [4],
    "task.max_source_positions": 1000,
    "task.max_target_positions": 1000,
    "optimizer._name": "adam",
    "optimizer.adam_betas": "(0.9,0.999)",
    "optimizer.adam_eps": 1e-6,
    "lr_scheduler._name": "inverse_sqrt",
    "lr_scheduler.warmup_init_lr": 1e-7,
    "optimizer.weight_decay": 0.01,
    "optimization.clip_norm": 5.0,
    # papers/000 Figure 3 and §3.2.1: prefix and block see each other, tokens of a block are independent, glancing
    "model.prefix_attention": "bidirectional",
    "model.transition_dim": 0,
    "criterion.glancing": "0.5:0.3",
}
DRAFTER_WMT14 = {**DRAFTER, "optimization.lr": [5e-4], "lr_scheduler.warmup_updates": 10_000}
DRAFTER_WMT14 |= {"optimization.max_update": 300_000}
# the first public code
DRAFTER_WMT16 = {**DRAFTER, "optimization.lr": [1e-3], "lr_scheduler.warmup_updates": 4000}
DRAFTER_WMT16 |= {"optimization.max_update": 50_000, "model.dropout": 0.2}
DROPOUTS = {0.1, 0.2, 0.3}  # papers/000 Table 13

# papers/000 Table 11 and papers/002 Table 7
GEC = {
    "dataset.max_tokens": 5120,
    "optimizer._name": "adam",
    "optimizer.adam_betas": "(0.9,0.98)",
    "optimizer.adam_eps": 1e-8,
    "lr_scheduler._name": "inverse_sqrt",
    "optimizer.weight_decay": 0.0,
    "criterion._name": "label_smoothed_cross_entropy",
    "criterion.label_smoothing": 0.1,
}
GEC_STAGES: dict[str, dict[str, Any]] = {
    "scratch": {"optimization.max_epoch": 60, "lr_scheduler.warmup_updates": 4000},
    "pretrain": {
        "optimization.max_epoch": 10,
        "lr_scheduler.warmup_updates": 8000,
        "optimization.lr": [3e-4],
        "model.dropout": 0.3,
        "distributed_training.distributed_world_size": 8,
        "optimization.update_freq": [8],
    },
    "finetune": {
        "optimization.max_epoch": 60,
        "lr_scheduler.warmup_updates": 4000,
        "optimization.lr": [3e-4],
        "model.dropout": 0.3,
    },
}
for stage in ("scratch", "finetune"):
    GEC_STAGES[stage] |= {"distributed_training.distributed_world_size": 4, "optimization.update_freq": [4]}

# fairseq's examples/nonautoregressive_translation/scripts.md
NAT = {
    "task._name": "translation_lev",
    "criterion._name": "nat_loss",
    "criterion.label_smoothing": 0.1,
    "model.label_smoothing": 0.1,
    "model.dropout": 0.3,
    "model.share_all_embeddings": True,
    "model.encoder_learned_pos": True,
    "model.decoder_learned_pos": True,
    "model.apply_bert_init": True,
    "optimizer._name": "adam",
    "optimizer.adam_betas": "(0.9,0.98)",
    "optimizer.weight_decay": 0.01,
    "lr_scheduler._name": "inverse_sqrt",
    "lr_scheduler.warmup_updates": 10000,
    "lr_scheduler.warmup_init_lr": 1e-7,
    "optimization.lr": [5e-4],
    "optimization.stop_min_lr": 1e-9,
    "optimization.max_update": 300_000,
    "dataset.max_tokens": 8000,
    "dataset.fixed_validation_seed": 7,
    "checkpoint.save_interval_updates": 10000,
}
_PREDICTED = {"model.pred_length_offset": True, "model.length_loss_factor": 0.1}
NAT_MODELS = {
    "nat": {"model._name": "nonautoregressive_transformer", "task.noise": "full_mask", **_PREDICTED},
    "inat": {
        "model._name": "iterative_nonautoregressive_transformer",
        "task.noise": "full_mask",
        **_PREDICTED,
        "model.train_step": 4,
        "model.dae_ratio": 0.5,
        "model.stochastic_approx": True,
    },
    "cmlm": {"model._name": "cmlm_transformer", "task.noise": "random_mask"},
    "levt": {"model._name": "levenshtein_transformer", "task.noise": "random_delete"},
}

WMT14 = ["wmt14_en_de", "wmt14_de_en"]
PAIRS = [*WMT14, "wmt16_en_ro", "wmt16_ro_en"]


def value(config: Any, name: str) -> Any:
    for key in name.split("."):
        config = config[key]
    return getattr(config, "name", config)


def check(config: Any, expected: dict[str, Any]) -> None:
    assert {name: value(config, name) for name in expected} == expected


def check_size(config: Any, size: dict[str, int]) -> None:
    for side in (config.model.encoder, config.model.decoder):
        assert {name: side[name] for name in size} == size
    assert config.model.share_all_embeddings


@pytest.mark.parametrize("experiment", PAIRS)
def test_teacher(experiment: str) -> None:
    config = compose(experiment, "teacher")
    check(config, VERIFIER)
    assert config.model.dropout in DROPOUTS
    # papers/000 §4.2.1: Transformer-big teaches WMT14, Transformer-base WMT16; both verify as base
    check_size(config, BIG if experiment in WMT14 else BASE)


@pytest.mark.parametrize(("experiment", "size"), [*((name, "") for name in PAIRS), *((name, "_big") for name in WMT14)])
def test_verifier_and_drafter(experiment: str, size: str) -> None:
    verifier, drafter = compose(experiment, f"verifier{size}"), compose(experiment, f"drafter{size}")
    check(verifier, VERIFIER)
    check(drafter, DRAFTER_WMT14 if experiment in WMT14 else DRAFTER_WMT16)
    for config in (verifier, drafter):
        check_size(config, BIG if size else BASE)
        assert config.model.dropout in DROPOUTS
    assert drafter.model.block_size == (30 if size else 25)  # papers/000 Tables 8 and 5


@pytest.mark.parametrize(
    ("experiment", "model"), [*(("conll14_gec", stage) for stage in GEC_STAGES), ("nlpcc18_gec", "scratch")]
)
def test_correctors(experiment: str, model: str) -> None:
    config = compose(experiment, model)
    check(config, {**GEC, **GEC_STAGES[model]})
    assert config.optimization.lr[0] in (3e-4, 5e-4)
    assert config.model.dropout in (0.3, 0.4, 0.5)
    check_size(config, BIG)


@pytest.mark.parametrize("stage", ["pretrain", "finetune"])
def test_corrector_out_of_bart(stage: str) -> None:
    config = compose("gec_bart_12_2", stage)
    check(config, {**GEC, **GEC_STAGES[stage]})
    assert config.model._name == "bart_12_2"


@pytest.mark.parametrize(("model", "options"), NAT_MODELS.items())
def test_non_autoregressive_baselines(model: str, options: dict[str, Any]) -> None:
    config = compose("wmt14_en_de", model)
    check(config, {**NAT, **options})
    sizes = ("encoder_embed_dim", "encoder_layers", "decoder_layers", "encoder")
    assert not any(name in config.model for name in sizes), "the architecture's own are of base size"


def test_summarization() -> None:
    verifier, drafter = compose("cnndm", "verifier"), compose("cnndm", "drafter")
    assert verifier.model._name == "bart_base"  # papers/000 §4.2.5
    assert drafter.model.block_size == 25  # papers/000 Table 10
    assert drafter.model.dropout in DROPOUTS
    check_size(drafter, {"embed_dim": 768, "ffn_embed_dim": 3072, "attention_heads": 12, "layers": 6})
    positions = {name: DRAFTER[name] for name in DRAFTER if "positions" not in name and name != "dataset.max_tokens"}
    check(drafter, positions)


def test_blockwise() -> None:
    base, heads = compose("wmt14_blockwise", "base"), compose("wmt14_blockwise", "blockwise")
    # papers/004 §7.1: transformer_base of Tensor2Tensor, 1,000,000 steps on 8 GPUs, and as many for the heads
    check_size(base, BASE)
    for config in (base, heads):
        assert config.optimization.max_update == 1_000_000
        assert config.distributed_training.distributed_world_size == 8
    peak = 2 * 512**-0.5 * base.lr_scheduler.warmup_updates**-0.5
    assert base.optimization.lr[0] == pytest.approx(peak, rel=1e-3)
    # §6: one head a batch; the hidden layer is one of all heads, and head 1 goes through it (footnote 1); frozen base
    assert heads.criterion.heads_per_step == 1
    assert not heads.model.own_hidden
    assert not heads.model.identity_head
    assert heads.model.freeze_base


def test_super_resolution() -> None:
    base, heads = compose("celeba_sr", "base_rgb"), compose("celeba_sr", "heads_rgb")
    # papers/004 §7.2: 8x8 to 32x32 pixels in colour, 8 GPUs, 1,000,000 steps and 250,000 more for the heads
    for config, updates in ((base, 1_000_000), (heads, 250_000)):
        assert config.optimization.max_update == config.lr_scheduler.total_num_update == updates
        assert (config.task.input_size, config.task.output_size, config.task.grey) == (8, 32, False)
        assert config.distributed_training.distributed_world_size == 8
    assert heads.criterion.heads_per_step == 1
    assert not heads.model.own_hidden
    assert not heads.model.identity_head  # footnote 1
    assert heads.model.freeze_base
