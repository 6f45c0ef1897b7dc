"""Random cases: models, search options, batches and modes."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairseq_aggdec.generation.modes import COPY_RULES

_ENGINE_KINDS = {
    "transformer": 20,
    "proposal heads": 6,
    "BART": 4,
    "mBART": 2,
    "alignment": 2,
    "speech": 3,
    "T5": 6,
}
"""kinds of models that the block engine runs, and how often each is drawn"""
KINDS = {
    **_ENGINE_KINDS,
    "LightConv": 3, "fconv": 2, "LSTM": 2, "adaptive softmax": 2, "cross-self-attention": 2, "NormFormer": 2,
}  # fmt: skip
"""all kinds of models, and how often each is drawn"""
_BARTS = ("BART", "mBART")
_ONE_DICTIONARY = (*_BARTS, "T5")
"""kinds whose two sides have the same embeddings"""
LANGUAGES = ("EOS", "first token", "prefix")
"""for what a task of many languages takes the target's symbol: mBART ends outputs by it, others begin them"""
ADVERSARIES = (
    "mostly right",
    "always wrong",
    "EOS at once",
    "junk after EOS",
    "padding",
    "foreign",
    "too long",
)
_ARITHMETICS: tuple[dict[str, Any], ...] = (
    {"bit_exact": True},
    {"precision": "int8"},
    {"precision": "int8", "bit_exact": True},
)
BACKENDS = ("kernels", "PyTorch", "graphs")
"""the engine's own kernels, PyTorch's operations in their place, or passes as they are captured on a GPU"""
_ROWS = (1, 2, 3, 7, 8, 16, 17)
_MANY_ROWS = (32, 64, 128, 256)
_DRAWN_LENGTHS = 17
"""number of sentences in a batch with lengths of their own; further ones have these lengths again"""

Options = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """All that decides a run."""

    seed: int
    """of weights, words and drafts"""
    words: list[int]
    """number of ordinary symbols in the source's and in the target's dictionary"""
    joined: bool
    """whether both sides have the same dictionary"""
    models: list[Options]
    """for each model, `kind`, `arch` and options of the architecture; two are an ensemble"""
    eos_share: float
    """see `random_models.random_network`"""
    twins: str
    """"equal" or "apart" where words have twins, see `random_models.twin_words`; else empty"""
    used: str
    """how each generator has decoded the first batch before: "other weights" or "inference mode"; "a beam": afterwards
    a generator with a beam was made, for which BART's attention is set; empty: it has not"""
    batches: list[list[int]]
    """length of each sentence of each batch, in words"""
    left_pad: bool
    language: str
    """one of `LANGUAGES` where the last symbol of the target's dictionary is used so; else empty"""
    prefix: int
    """number of forced tokens"""
    search: Options
    """arguments of fairseq's `SequenceGenerator`"""
    block_ngrams: bool
    """whether `no_repeat_ngram_size` is in force, as it is with `--block-ngrams`; without, fairseq ignores it"""
    modes: list[Options]
    """for each mode, `decoding` and its options"""
    backend: str
    """one of `BACKENDS`"""
    threads: int
    """number of PyTorch's threads"""

    @property
    def kind(self) -> str:
        return " + ".join(sorted(model["kind"] for model in self.models))


class Drawing(random.Random):
    """Draws what a case is made of."""

    def chance(self, percent: int) -> bool:
        return self.randrange(100) < percent


def case_of(seed: int, most: int = 256) -> Case:
    """The case of a seed, in batches of at most so many sentences."""
    rng = Drawing(seed)
    many = rng.chance(5)
    words = rng.choice((2000, 3000)) if many else rng.randint(6, 40)
    kinds = [rng.choice([kind for kind, count in KINDS.items() for _ in range(count)])]
    if kinds != ["speech"] and rng.chance(20):
        kinds.append(rng.choice([kind for kind in KINDS if kind != "speech"]))
    joined = kinds != ["speech"] and (
        not rng.chance(40) or any(kind in _ONE_DICTIONARY for kind in kinds)
    )
    models = [model_options(rng, kind, joined) for kind in kinds]
    search, prefix = _search(rng)
    # fairseq does not check that the model has enough positions
    if "match_source_len" in search:
        for model in models:
            model.pop("max_target_positions", None)
    arithmetic = None
    if len(models) == 1 and models[0]["kind"] in _ENGINE_KINDS and rng.chance(30):
        arithmetic = rng.choice(_ARITHMETICS)
    backend = (
        "kernels"
        if arithmetic
        else rng.choice(("kernels", "kernels", "kernels", "PyTorch", "graphs"))
    )
    most = min(
        most,
        8
        if many
        else 17
        if backend == "graphs"
        else 32
        if search["max_len_b"] == 200
        else most,
    )
    return Case(
        seed=rng.randint(0, 10**6),
        words=[words, words if joined else rng.randint(6, 40)],
        joined=joined,
        models=models,
        eos_share=rng.choice((0.1, 0.02, 0.05, 0.2)),
        # of speech no sentence can be decoded alone as padded in its batch, which near-ties need
        twins=""
        if kinds == ["speech"]
        else rng.choice(("", *[""] * 9, "equal", "apart")),
        used=rng.choice(("", *[""] * 3, "other weights", "inference mode", "a beam")),
        batches=[_batch(rng, most) for _ in range(rng.randint(1, 2))],
        left_pad=not rng.chance(30),
        # with it no other EOS is taken
        language=rng.choice(("", "", "", *LANGUAGES["match_source_len" in search :])),
        prefix=prefix,
        search=search,
        block_ngrams=rng.chance(50),
        modes=[_mode(rng, models, joined, arithmetic) for _ in range(rng.randint(1, 3))]
        + [_beam(rng) for _ in range(rng.randint(0, 1))],
        backend=backend,
        threads=1 + rng.chance(5),
    )


def model_options(rng: Drawing, kind: str, joined: bool) -> Options:
    """`kind`, `arch` and the options of a model, for `random_models.random_network`."""
    return {"kind": kind, **_model(rng, kind, joined)}


def _model(rng: Drawing, kind: str, joined: bool) -> Options:
    if kind == "LightConv":
        convolutions = rng.choice(("lightweight", "dynamic"))
        return {
            "arch": "lightconv", "encoder_conv_type": convolutions, "decoder_conv_type": convolutions,
            "decoder_learned_pos": rng.chance(30), "encoder_glu": rng.chance(50),
            "decoder_glu": rng.chance(50), "decoder_normalize_before": rng.chance(50),
        }  # fmt: skip
    if kind == "fconv":
        width = rng.choice((8, 16, 24))
        depth = rng.randint(1, 3)
        return {
            "arch": "fconv", "encoder_layers": f"[({width}, 3)] * {rng.randint(1, 3)}",
            "decoder_layers": f"[({width}, {rng.choice((2, 3, 5))})] * {depth}",
            "decoder_attention": rng.choice(("True", f"[False] * {depth - 1} + [True]")),
        }  # fmt: skip
    if kind == "LSTM":
        depth = rng.randint(1, 3)
        return {
            "arch": "lstm", "encoder_layers": depth, "decoder_layers": depth,
            "encoder_bidirectional": rng.chance(50), "decoder_hidden_size": rng.choice((8, 16, 24)),
            "decoder_attention": rng.choice(("1", "1", "1", "1", "0")),
        }  # fmt: skip
    if kind == "T5":
        buckets, longest = rng.choice(((32, 128), (32, 20), (8, 20), (6, 9), (4, 12)))
        return {
            "arch": "hub_t5", "encoder_layers": rng.randint(1, 3), "decoder_layers": rng.randint(1, 3),
            "encoder_attention_heads": rng.choice((1, 2, 3, 4, 8, 12, 16)), "head_dim": rng.choice((4, 8, 20, 64)),
            "encoder_embed_dim": rng.choice((16, 20, 36, 48, 64)), "encoder_ffn_embed_dim": rng.choice((20, 32, 64)),
            "distance_buckets": buckets, "longest_distance": longest, "norm_eps": rng.choice((1e-6, 1e-2)),
            "is_gated": rng.chance(50), "share_all_embeddings": rng.chance(50),
            "first_input": rng.choice((0, 1, 1, 5)), "max_target_positions": rng.choice((12, 24, 64, 256)),
        }  # fmt: skip
    model = {"arch": "transformer", **_transformer(rng, joined and kind not in _BARTS)}
    if kind == "transformer" and rng.chance(10):
        model[rng.choice(("encoder_layers", "decoder_layers"))] = 0
    if kind == "transformer" and rng.chance(25):
        model["arch"] = "hub_transformer"
    if kind in _BARTS:
        for name in ("share_decoder_input_output_embed", "decoder_input_dim", "decoder_output_dim",
                     "no_token_positional_embeddings"):  # fmt: skip
            model.pop(name, None)
        model["arch"] = (
            rng.choice(("bart_base", "bart_large", "bart_12_2"))
            if kind == "BART"
            else "mbart_base"
        )
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
        model.update(
            scale_attn=True, scale_fc=rng.chance(50), scale_heads=rng.chance(50)
        )
    elif kind == "speech":
        model.update(
            arch="s2t_transformer", input_channels=1, input_feat_per_channel=8, conv_channels=16,
            conv_kernel_sizes=rng.choice(("5,5", "3")),
        )  # fmt: skip
    elif kind == "proposal heads":
        model.update(
            arch="blockwise_transformer", block_heads=rng.randint(2, 7), identity_head=rng.chance(50),
            own_hidden=rng.chance(50), head_ffn_embed_dim=rng.choice((8, 24)),
        )  # fmt: skip
    return model


def _transformer(rng: Drawing, joined: bool) -> Options:
    """Options of fairseq's plain Transformer."""
    model: Options = {
        "encoder_layers": rng.randint(1, 3),
        "decoder_layers": rng.randint(1, 3),
    }
    for side in ("encoder", "decoder"):
        heads = rng.choice((1, 2, 3, 4, 8, 12, 16))
        model[f"{side}_attention_heads"] = heads
        model[f"{side}_embed_dim"] = rng.choice(
            [dim for dim in (16, 20, 24, 36, 48, 64) if dim % heads == 0]
        )
        model[f"{side}_ffn_embed_dim"] = rng.choice((20, 32, 64))
        model[f"{side}_normalize_before"] = rng.chance(50)
        model[f"{side}_learned_pos"] = rng.chance(40)
    if joined and rng.chance(30):
        model.update(
            share_all_embeddings=True, encoder_embed_dim=48, decoder_embed_dim=48
        )
    elif rng.chance(30):
        model["share_decoder_input_output_embed"] = True
    elif rng.chance(15):
        model.update(decoder_input_dim=12, decoder_output_dim=rng.choice((12, 16)))
    if rng.chance(15):
        model["no_token_positional_embeddings"] = True
    if rng.chance(30):
        model["layernorm_embedding"] = True
    if rng.chance(20):
        model["no_scale_embedding"] = True
    if rng.chance(30):
        model["activation_fn"] = rng.choice(("gelu", "swish"))
    if rng.chance(30):
        model["max_target_positions"] = rng.choice((12, 24))
    return model


def _batch(rng: Drawing, most: int) -> list[int]:
    """The lengths of at most `most` sentences."""
    rows = min(most, rng.choice(_MANY_ROWS if rng.chance(7) else _ROWS))
    least = rng.randint(0, 1)
    longest = rng.choice((1, 4, 9, 20, 20))
    lengths = [rng.randint(least, longest) for _ in range(min(rows, _DRAWN_LENGTHS))]
    return [lengths[row % len(lengths)] for row in range(rows)]


def _search(rng: Drawing) -> tuple[Options, int]:
    """Search options and the number of forced tokens."""
    search: Options = {"max_len_b": 16}
    if not rng.chance(75):
        return search, 0
    if rng.chance(50):
        a, b = rng.choice(
            ((0, 12), (0, 1), (0, 0), (0, 200), (0.7, 12), (1.2, 10), (0.5, 3), (2, 0))
        )
        search.update(max_len_a=a, max_len_b=b)
    if rng.chance(40):
        search["unk_penalty"] = rng.choice((1.5, -2.0, -8.0, -30.0, 100.0))
    if rng.chance(30):
        search["temperature"] = rng.choice((0.6, 1.7))
    if rng.chance(30):
        search.update(
            len_penalty=rng.choice((0.0, 0.6, 2.0)), normalize_scores=rng.chance(70)
        )
    if rng.chance(25):
        search["no_repeat_ngram_size"] = rng.choice((1, 2, 3))
    if rng.chance(20):
        search["tokens_to_suppress"] = rng.choice((("w3",), ("w4", "w5", "<s>")))
    if rng.chance(12):
        search["match_source_len"] = True
        search.pop("max_len_a", None)
    elif rng.chance(30):
        # of the shortest source
        most = int(search.get("max_len_a", 0) + search["max_len_b"])
        search["min_len"] = rng.choice(
            [least for least in (0, 2, 4, 10) if least <= min(most, 10)]
        )
    if (
        search["max_len_b"] == 0
        and "min_len" not in search
        and "match_source_len" not in search
    ):
        search["min_len"] = 0
    return search, rng.randint(1, 6) if rng.chance(25) else 0


def _mode(
    rng: Drawing, models: list[Options], joined: bool, arithmetic: Options | None
) -> Options:
    has_heads = any("block_heads" in model for model in models)
    is_text = models[0]["kind"] != "speech"
    of_models = [
        *["gad", "gad", "speculative", "speculative"] * is_text,
        *["blockwise"] * (2 * has_heads),
    ]
    decoding = rng.choice(["greedy", "iad", "iad", *of_models])
    mode: Options = {"decoding": decoding}
    if decoding == "greedy":
        return mode | (arithmetic or {})
    if decoding == "speculative":
        mode.update(block_size=rng.choice((1, 2, 5)), drafter=_small_model(rng, joined))
    elif rng.chance(40):
        mode["drafts"] = rng.choice(ADVERSARIES)
        # 0: the adversary's own length
        mode["block_size"] = rng.choice((0, 0, 1, 4, 9))
    elif rng.chance(50) and (joined or decoding != "iad"):
        mode["drafts"] = "oracle"
    if mode.get("drafts", "oracle") == "oracle" and "drafter" not in mode:
        if decoding == "blockwise":
            # the ones used
            heads = next(
                model["block_heads"] for model in models if "block_heads" in model
            )
            mode["block_size"] = rng.choice(
                [size for size in (1, 2, 4, 7) if size <= heads]
            )
        elif decoding == "gad":
            mode.update(
                block_size=rng.choice((1, 3, 8)),
                drafter=_drafter(rng, models[0], joined),
            )
        elif rng.chance(30):
            mode["longest_copy"] = rng.choice((0, 1, 5))
    if decoding == "iad":
        mode["copies"] = rng.choice(COPY_RULES)
    # tiny models cost a verifier's steps
    if rng.chance(60 if decoding == "speculative" else 40):
        mode["whole"] = True
    if arithmetic is not None:
        mode.update(arithmetic, split=rng.choice((0, 0, 1, 3)))
    return mode


def _beam(rng: Drawing) -> Options:
    """`aggressive-beam`."""
    mode: Options = {
        "decoding": "aggressive-beam",
        "beam": rng.choice((*range(1, 9), 20)),
    }
    # else tiny models, whose calls cost thousands of prefixes, look ahead until they have learnt
    if rng.chance(70):
        mode["budget"] = rng.choice((0, 0, 1, 9, 20, 60))
    return mode


def _small_model(rng: Drawing, joined: bool) -> Options:
    """Options of an ordinary model that drafts; `kind` "alike": the first verifier's, with nearly its weights."""
    kind = (
        "alike"
        if rng.chance(70)
        else rng.choice(
            ("transformer", "proposal heads", "LightConv", *["T5"] * joined)
        )
    )
    return {"kind": kind} if kind == "alike" else model_options(rng, kind, joined)


def _drafter(rng: Drawing, verifier: Mapping[str, Any], joined: bool) -> Options:
    """Options of a block drafter; with `shared` it has the verifier's encoder."""
    drafter = _transformer(rng, joined)
    if verifier["kind"] in (
        "transformer",
        "proposal heads",
        "alignment",
    ) and rng.chance(40):
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
            for name in (
                "decoder_input_dim",
                "decoder_output_dim",
                "share_decoder_input_output_embed",
            ):
                drafter.pop(name, None)
    if rng.chance(40):
        drafter["prefix_attention"] = "bidirectional"
    # fewer positions than its verifier has
    if "shared" not in drafter and rng.chance(20):
        drafter.update(encoder_learned_pos=True, max_source_positions=12)
    same = drafter["encoder_embed_dim"] == drafter["decoder_embed_dim"]
    if same and not drafter.get("no_token_positional_embeddings") and rng.chance(50):
        drafter["mask_source_copy"] = True
    if rng.chance(30) and "decoder_output_dim" not in drafter:
        drafter["transition_dim"] = 8
    return drafter
