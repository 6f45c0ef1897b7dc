"""Random cases: models, search options, batches and modes. A number is the seed of a case, which is written as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

_ENGINE_KINDS = {"transformer": 10.0, "proposal heads": 3, "BART": 2, "mBART": 1, "alignment": 1}
"""kinds of models that the block engine runs, and how often each is drawn"""
KINDS = {
    **_ENGINE_KINDS,
    "LightConv": 1.5, "fconv": 1, "LSTM": 1, "adaptive softmax": 1, "cross-self-attention": 0.5, "NormFormer": 0.5,
}  # fmt: skip
"""all kinds of models, and how often each is drawn"""
_BARTS = ("BART", "mBART")
ADVERSARIES = ("mostly right", "always wrong", "EOS at once", "junk behind EOS", "padding", "foreign", "too long")
_ARITHMETICS: tuple[dict[str, Any], ...] = (
    {"bit_exact": True},
    {"precision": "int8"},
    {"precision": "bf16"},
    {"precision": "int8", "bit_exact": True},
)


@dataclass(frozen=True)
class Case:
    """All that decides a run. Weights, words and drafts are drawn with the number as seed."""

    number: int
    words: list[int]
    """number of ordinary symbols in the source's and in the target's dictionary"""
    joined: bool
    """whether both sides have the same dictionary"""
    models: list[dict[str, Any]]
    """for each model, `kind`, `arch` and options of the architecture"""
    eos_share: float
    """see `random_models.random_network`"""
    twins: str
    """"equal" or "apart" where words have twins, see `random_models.twin_words`; else empty"""
    used: str
    """how each generator has decoded the first batch before: "other weights" or "inference mode"; empty: it has not"""
    batches: list[list[list[int]]]
    """number and length (in words) of each sentence of each batch"""
    left_pad: bool
    prefix: int
    """number of forced tokens"""
    search: dict[str, Any]
    """arguments of fairseq's `SequenceGenerator`"""
    modes: list[dict[str, Any]]
    """for each mode, `decoding` and its options"""

    @property
    def kind(self) -> str:
        return " + ".join(sorted(model["kind"] for model in self.models))

    def changes(self) -> dict[str, Any]:
        """The fields in which this case differs from the case that its number draws."""
        drawn = asdict(draw(self.number))
        return {name: value for name, value in asdict(self).items() if value != drawn[name]}

    def changed(self, **changes: Any) -> "Case":
        return replace(self, **changes)


def draw(number: int) -> Case:
    """The case of a number."""
    rng = Random(f"case {number}")
    joined = rng.random() < 0.6
    many = rng.random() < 0.05
    words = rng.choice((2000, 3000)) if many else rng.randint(6, 40)
    kinds = rng.choices(list(KINDS), list(KINDS.values()), k=rng.choice((1, 1, 1, 1, 2)))
    joined = joined or any(kind in _BARTS for kind in kinds)
    models = [{"kind": kind, **_model(rng, kind, joined)} for kind in kinds]
    search, prefix = _search(rng)
    if "match_source_len" in search:  # fairseq does not check that the model has enough positions
        for model in models:
            model.pop("max_target_positions", None)
    return Case(
        number=number,
        words=[words, words if joined else rng.randint(6, 40)],
        joined=joined,
        models=models,
        eos_share=rng.choice((0.02, 0.05, 0.1, 0.2)),
        twins=Random(f"twins {number}").choice(("equal", "apart", *[""] * 10)),
        used=Random(f"used {number}").choice(("other weights", "inference mode", *[""] * 4)),
        batches=_batches(rng, most=8 if many else 32 if search["max_len_b"] == 200 else 256),
        left_pad=rng.random() < 0.7,
        prefix=prefix,
        search=search,
        modes=[*_modes(rng, models, joined), *_beams(Random(f"beams {number}"), models, joined)],
    )


def _model(rng: Random, kind: str, joined: bool) -> dict[str, Any]:
    if kind == "LightConv":
        convolutions = rng.choice(("lightweight", "dynamic"))
        return {
            "arch": "lightconv", "encoder_conv_type": convolutions, "decoder_conv_type": convolutions,
            "decoder_learned_pos": rng.random() < 0.3, "encoder_glu": rng.random() < 0.5,
            "decoder_glu": rng.random() < 0.5, "decoder_normalize_before": rng.random() < 0.5,
        }  # fmt: skip
    if kind == "fconv":
        width, depth = rng.choice((8, 16, 24)), rng.randint(1, 3)
        return {
            "arch": "fconv", "encoder_layers": f"[({width}, 3)] * {rng.randint(1, 3)}",
            "decoder_layers": f"[({width}, {rng.choice((2, 3, 5))})] * {depth}",
            "decoder_attention": rng.choice(("True", f"[False] * {depth - 1} + [True]")),
        }  # fmt: skip
    if kind == "LSTM":
        depth = rng.randint(1, 3)
        return {
            "arch": "lstm", "encoder_layers": depth, "decoder_layers": depth,
            "encoder_bidirectional": rng.random() < 0.5, "decoder_hidden_size": rng.choice((8, 16, 24)),
            "decoder_attention": "1" if rng.random() < 0.8 else "0",
        }  # fmt: skip
    model = {"arch": "transformer", **_transformer(rng, joined and kind not in _BARTS)}
    if kind in _BARTS:
        for name in ("share_decoder_input_output_embed", "decoder_input_dim", "decoder_output_dim",
                     "no_token_positional_embeddings"):  # fmt: skip
            model.pop(name, None)
        model["arch"] = rng.choice(("bart_base", "bart_large", "bart_12_2")) if kind == "BART" else "mbart_base"
        model["decoder_embed_dim"] = model["encoder_embed_dim"]
        model["decoder_attention_heads"] = model["encoder_attention_heads"]
    elif kind == "alignment":
        model["arch"] = "transformer_align"
    elif kind == "adaptive softmax":
        for name in ("share_decoder_input_output_embed", "share_all_embeddings"):
            model.pop(name, None)
        model.update(adaptive_softmax_cutoff="4,7", adaptive_softmax_dropout=0.0)
        model["adaptive_softmax_factor"] = rng.choice((1, 2))
    elif kind == "cross-self-attention":
        model.update(cross_self_attention=True, no_cross_attention=True)
        for name in ("embed_dim", "attention_heads"):
            model[f"encoder_{name}"] = model[f"decoder_{name}"]
    elif kind == "NormFormer":
        model.update(scale_attn=True, scale_fc=rng.random() < 0.5, scale_heads=rng.random() < 0.5)
    elif kind == "proposal heads":
        model.update(
            arch="blockwise_transformer", block_heads=rng.randint(2, 7), identity_head=rng.random() < 0.5,
            own_hidden=rng.random() < 0.5, head_ffn_embed_dim=rng.choice((8, 24)),
        )  # fmt: skip
    return model


def _transformer(rng: Random, joined: bool) -> dict[str, Any]:
    """Options of fairseq's plain Transformer."""
    model: dict[str, Any] = {"encoder_layers": rng.randint(1, 3), "decoder_layers": rng.randint(1, 3)}
    for side in ("encoder", "decoder"):
        heads = rng.choice((1, 2, 3, 4, 8, 12, 16))
        model[f"{side}_attention_heads"] = heads
        model[f"{side}_embed_dim"] = rng.choice([dim for dim in (16, 20, 24, 36, 48, 64) if dim % heads == 0])
        model[f"{side}_ffn_embed_dim"] = rng.choice((20, 32, 64))
        model[f"{side}_normalize_before"] = rng.random() < 0.5
        model[f"{side}_learned_pos"] = rng.random() < 0.4
    if joined and rng.random() < 0.3:
        model.update(share_all_embeddings=True, encoder_embed_dim=48, decoder_embed_dim=48)
    elif rng.random() < 0.3:
        model["share_decoder_input_output_embed"] = True
    elif rng.random() < 0.15:
        model.update(decoder_input_dim=12, decoder_output_dim=rng.choice((12, 16)))
    if rng.random() < 0.15:
        model["no_token_positional_embeddings"] = True
    if rng.random() < 0.3:
        model["layernorm_embedding"] = True
    if rng.random() < 0.2:
        model["no_scale_embedding"] = True
    if rng.random() < 0.3:
        model["activation_fn"] = "gelu"
    if rng.random() < 0.3:
        model["max_target_positions"] = rng.choice((12, 24))
    return model


def _batches(rng: Random, most: int) -> list[list[list[int]]]:
    """Numbers and lengths of sentences, batch by batch, with at most `most` sentences in a batch."""
    number, batches = 0, []
    for _ in range(rng.choice((1, 1, 1, 2))):
        rows = rng.choice((1, 2, 3, 7, 8, 16, 17, 32, 64, 128, 256))
        longest = rng.choice((1, 4, 9, 20, 20))
        batch = [[number + row, rng.randint(rng.choice((0, 1)), longest)] for row in range(rows)]
        number += rows
        batches.append(batch[:most])
    return batches


def _search(rng: Random) -> tuple[dict[str, Any], int]:
    """Search options and the number of forced tokens."""
    search: dict[str, Any] = {"max_len_b": 24}
    prefix = 0
    if rng.random() < 0.25:
        return search, prefix
    if rng.random() < 0.5:
        a, b = rng.choice(((0, 200), (0, 12), (0, 1), (0, 0), (0.7, 12), (1.2, 10), (0.5, 3), (2, 0)))
        search.update(max_len_a=a, max_len_b=b)
    if rng.random() < 0.4:
        search["unk_penalty"] = rng.choice((1.5, -2.0, -8.0, -30.0, 100.0))
    if rng.random() < 0.3:
        search["temperature"] = rng.choice((0.6, 1.7))
    if rng.random() < 0.3:
        search.update(len_penalty=rng.choice((0.0, 0.6, 2.0)), normalize_scores=rng.random() < 0.7)
    if rng.random() < 0.25:
        search["no_repeat_ngram_size"] = rng.choice((1, 2, 3))
    if rng.random() < 0.2:
        search["tokens_to_suppress"] = rng.choice((["w3"], ["w4", "w5", "<s>"]))
    if rng.random() < 0.12:
        search["match_source_len"] = True
        search.pop("max_len_a", None)
    elif rng.random() < 0.3:
        most = int(search.get("max_len_a", 0) + search["max_len_b"])  # of the shortest source
        search["min_len"] = rng.choice([least for least in (0, 2, 4, 10) if least <= min(most, 10)])
    if search["max_len_b"] == 0 and "min_len" not in search and "match_source_len" not in search:
        search["min_len"] = 0
    if rng.random() < 0.25:
        prefix = rng.randint(1, 6)
    return search, prefix


def _modes(rng: Random, models: list[dict[str, Any]], joined: bool) -> list[dict[str, Any]]:
    """`greedy` and three random modes."""
    has_heads = any("block_heads" in model for model in models)
    engine = len(models) == 1 and models[0]["kind"] in _ENGINE_KINDS
    modes: list[dict[str, Any]] = [{"decoding": "greedy"}]
    arithmetic = rng.choice(_ARITHMETICS) if engine and rng.random() < 0.3 else None
    for _ in range(3):
        decoding = rng.choice(["iad", "iad", "hybrid", "hybrid", "gad", "gad", *["blockwise"] * (3 * has_heads)])
        mode: dict[str, Any] = {"decoding": decoding}
        if rng.random() < 0.4:
            mode["drafts"] = rng.choice(ADVERSARIES)
        elif rng.random() < 0.5 and (joined or decoding in ("gad", "blockwise")):
            mode["drafts"] = "oracle"
        if "drafts" in mode and mode["drafts"] != "oracle":
            mode["block_size"] = rng.choice((0, 0, 1, 4, 9))  # 0: the adversary's own length
        elif decoding == "blockwise":
            mode["block_size"] = rng.choice([size for size in (1, 2, 4, 7) if size <= _fewest_heads(models)])
        elif decoding == "gad" or (decoding == "hybrid" and rng.random() < 0.6):
            mode["block_size"] = rng.choice((1, 3, 8))
            if not (decoding == "hybrid" and has_heads and rng.random() < 0.5):
                mode["drafter"] = _drafter(rng, models[0], joined)
            else:
                mode["block_size"] = _fewest_heads(models)
        if decoding in ("iad", "hybrid") and mode.get("drafts", "oracle") == "oracle" and rng.random() < 0.3:
            mode["copying"] = [rng.choice((1, 2, 3)), rng.choice((0, 3, 4)), rng.choice((0, 1, 5))]
        if rng.random() < 0.3:
            mode["adaptive_draft"] = True
        elif rng.random() < 0.4:
            mode["shorten_drafts"] = False
        if arithmetic is not None:
            mode.update(arithmetic, split=rng.choice((0, 0, 1, 3)))
        modes.append(mode)
    return modes


def _beams(rng: Random, models: list[dict[str, Any]], joined: bool) -> list[dict[str, Any]]:
    """`aggressive-beam`, in every other case."""
    if rng.random() < 0.5:
        return []
    mode: dict[str, Any] = {"decoding": "aggressive-beam", "beam": rng.choice((*range(1, 9), 20))}
    if rng.random() < 0.5:
        mode["budget"] = rng.choice((1, 9, 20, 60))
    if rng.random() < 0.3:
        mode.update(block_size=rng.choice((1, 3, 8)), drafter=_drafter(rng, models[0], joined))
    return [mode]


def _fewest_heads(models: list[dict[str, Any]]) -> int:
    """Number of heads of the first model with proposal heads, which are the ones used."""
    return next(model["block_heads"] for model in models if "block_heads" in model)


def _drafter(rng: Random, verifier: Mapping[str, Any], joined: bool) -> dict[str, Any]:
    """Options of a block drafter; with `shared` it has the verifier's encoder."""
    drafter = _transformer(rng, joined)
    if verifier["kind"] in ("transformer", "proposal heads", "alignment") and rng.random() < 0.4:
        drafter["shared"] = True
        shared = ("layernorm_embedding", "no_scale_embedding", "activation_fn", "no_token_positional_embeddings",
                  "share_all_embeddings")  # fmt: skip
        for name in [*drafter, *verifier]:
            if name.startswith("encoder_") or name in shared:
                drafter.pop(name, None)
                if name in verifier:
                    drafter[name] = verifier[name]
        if drafter.get("share_all_embeddings"):
            drafter["decoder_embed_dim"] = 48
            for name in ("decoder_input_dim", "decoder_output_dim", "share_decoder_input_output_embed"):
                drafter.pop(name, None)
    if rng.random() < 0.4:
        drafter["prefix_attention"] = "bidirectional"
    same = drafter["encoder_embed_dim"] == drafter["decoder_embed_dim"]
    if same and not drafter.get("no_token_positional_embeddings") and rng.random() < 0.5:
        drafter["mask_source_copy"] = True
    if rng.random() < 0.3 and "decoder_output_dim" not in drafter:
        drafter["transition_dim"] = 8
    return drafter
