"""The public families of docs/options.md: models of their published arguments, small and with random weights.

A draft is what stock fairseq answers, with every sixth word changed: many tokens pass, and some do not.
"""

import json
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_aggdec import load
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from tests.cli.correction import PLUGIN, assert_same_hypotheses, assert_same_lists
from tests.support.helpers import ToyModel, generate_here, parse_generate, refused_with
from tests.support.random_models import draw_weights, let_end

SIZES = (
    "--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64 "
    "--decoder-ffn-embed-dim 64 --encoder-attention-heads 2 --decoder-attention-heads 2"
)
PRE_NORM = "--encoder-normalize-before --decoder-normalize-before"
TOKENS = "--encoder-langtok src --decoder-langtok"
MULTI = "translation_multi_simple_epoch"
NLLB = f"--lang-pairs src-tgt {TOKENS} --fixed-dictionary DICTIONARY"


class Family(NamedTuple):
    """What a published checkpoint was trained with, and how it is decoded."""

    model: str
    """--arch and the options beside it"""
    task: str = "translation"
    options: str = ""
    """of the task, for training and decoding"""
    saved: str = "args"
    """the form of the file: of 2018, with `args` (until 2020), or with `cfg`"""
    search: str = "--beam 5"
    models: int = 1
    languages: str = "-s src -t tgt"
    ours: str = ""
    """the task's options in the plugin, where they differ"""


FAMILIES = {
    "WMT14, WMT16": Family("--arch transformer_vaswani_wmt_en_de_big --share-all-embeddings", saved="2018"),
    "WMT19": Family("--arch transformer_wmt_en_de_big --share-decoder-input-output-embed", saved="cfg", models=2),
    "WMT21": Family(
        f"--arch transformer_wmt_en_de_big {PRE_NORM} --share-all-embeddings",
        MULTI, f"--langs ha,src,tgt --lang-pairs src-tgt {TOKENS}", "cfg",
    ),
    "M2M-100": Family(
        f"--arch transformer_wmt_en_de_big {PRE_NORM} --share-all-embeddings --encoder-layerdrop 0.05 "
        "--decoder-layerdrop 0.05",
        MULTI, f"--lang-pairs PAIRS {TOKENS} --fixed-dictionary DICTIONARY",
    ),
    "NLLB-200": Family(
        f"--arch transformer {PRE_NORM} --share-all-embeddings",
        MULTI, f"--langs src,tgt,x1,x2,x3 {NLLB}", "cfg",
        ours=f"--langs src,tgt --add-data-source-prefix-tags {NLLB}",
    ),
    "mBART-25": Family(
        f"--arch mbart_large {PRE_NORM} --layernorm-embedding",
        "translation_from_pretrained_bart", "--langs ar,src,tgt",
    ),
    "mBART-50": Family(
        f"--arch mbart_large {PRE_NORM} --layernorm-embedding",
        MULTI, f"--lang-dict LANGUAGES --lang-pairs src-tgt {TOKENS} --lang-tok-style mbart", "cfg",
    ),
    "BART": Family(
        "--arch bart_large --layernorm-embedding --share-all-embeddings --share-decoder-input-output-embed "
        "--truncate-source",
        saved="cfg",
        search="--beam 4 --lenpen 2.0 --min-len 5 --no-repeat-ngram-size 3",
    ),
    "IndicTrans2": Family(
        f"--arch transformer {PRE_NORM} --layernorm-embedding --share-decoder-input-output-embed", saved="cfg"
    ),
    "IWSLT17": Family(
        "--arch multilingual_transformer_iwslt_de_en --share-decoders --share-decoder-input-output-embed",
        "multilingual_translation", "--lang-pairs src-tgt,tgt-src", "cfg",
    ),
}  # fmt: skip


def made(family: Family, data: Path, folder: Path, sizes: str = SIZES) -> list[Path]:
    """The checkpoints of a family."""
    arguments = f"{family.model} {sizes} --task {family.task} {family.options} {family.languages}"
    args = options.parse_args_and_arch(
        options.get_training_parser(), [str(data), *arguments.split()]
    )
    cfg = convert_namespace_to_omegaconf(args)
    task = tasks.setup_task(cfg.task)
    words = task.target_dictionary
    eos = (
        words.index("[tgt]")
        if family.task == "translation_from_pretrained_bart"
        else words.eos()
    )
    paths = [folder / f"model{number}.pt" for number in range(family.models)]
    for number, path in enumerate(paths):
        torch.manual_seed(number)
        model = task.build_model(cfg.model).eval()
        draw_weights(single(model))
        speech = family.task == "speech_to_text"
        vary(single(model).decoder, speech)
        if not speech:
            let_end(single(model), words, 0.1, eos)
        save(family, args, cfg, model.state_dict(), path)
    return paths


@torch.no_grad()
def vary(decoder: Any, speech: bool) -> None:
    """Change a random decoder so that it does not repeat one word, and that its words depend on the source."""
    last = decoder.layers[-1].fc2.weight
    # by shared embeddings the same word would win again otherwise
    last.sub_(last.mean(dim=1, keepdim=True)).mul_(30)
    for layer in decoder.layers:
        layer.encoder_attn.out_proj.weight.mul_(
            10 if layer.normalize_before or speech else 1
        )


def single(model: Any) -> Any:
    """The encoder-decoder that translates, of a model with one for each pair of languages."""
    return model.models["src-tgt"] if hasattr(model, "models") else model


def save(
    family: Family, args: Namespace, cfg: Any, weights: dict[str, Tensor], path: Path
) -> None:
    """Save as fairseq did in those years."""
    history = {"criterion_name": "LabelSmoothedCrossEntropyCriterion", "best_loss": 3.9}
    extra = {"epoch": 28, "batch_offset": 0, "val_loss": 3.9}
    state: Any = {
        "model": weights,
        "args": None,
        "optimizer_history": [history],
        "extra_state": extra,
    }
    if family.saved == "cfg":
        state["cfg"] = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    else:
        state["args"] = Namespace(
            **{name: value for name, value in vars(args).items() if is_old(name)}
        )
    if family.saved == "2018":
        state["model"] = in_the_form_of_2018(weights)
    torch.save(state, path, _use_new_zipfile_serialization=family.saved == "cfg")


def is_old(option: str) -> bool:
    """Whether an option is one of the model's or the task's that existed in 2020."""
    parts = "encoder decoder share dropout activation max_ lang dict left_pad adaptive norm no_scale extra_data".split()
    return option in ("arch", "task", "data", "criterion") or any(
        part in option for part in parts
    )


def in_the_form_of_2018(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Attention has one matrix for queries, keys and values, and the output projection is not stored."""
    old = {"encoder.version": torch.Tensor([2]), "decoder.version": torch.Tensor([2])}
    for name, value in weights.items():
        if ".q_proj." in name:
            parts = [
                weights[name.replace(".q_proj.", f".{part}_proj.")] for part in "qkv"
            ]
            old[name.replace(".q_proj.", ".in_proj_")] = torch.cat(parts)
        elif (
            ".k_proj." not in name
            and ".v_proj." not in name
            and "output_projection" not in name
        ):
            old[name] = value
    return old


def command(family: Family, path: object, decoding: str | None) -> list[str]:
    """The plugin's options, or those of fairseq's own task where `decoding` is None."""
    task = f"--task {family.task}"
    given = family.options
    if decoding is not None:
        task = f"--task aggressive_{family.task} --decoding {decoding} --print-step"
        given = family.ours or family.options
    options = f"--path {path} --user-dir {PLUGIN} --cpu {task} {given} {family.languages} --max-len-b 12"
    return options.split()


def decode(
    family: Family, data: Path, path: object, decoding: str | None, *rest: object
) -> str:
    return generate_here(data, *command(family, path, decoding), *rest)


def iterations(output: str) -> float:
    """Iterations for a token."""
    found = parse_generate(output).values()
    return sum(sentence.steps or 0 for sentence in found) / sum(
        len(sentence.positional) for sentence in found
    )


def write_drafts(output: str, path: Path) -> Path:
    """What stock fairseq answers, with every sixth word changed."""
    answers = [answer.tokens for _, answer in sorted(parse_generate(output).items())]
    assert len(set(map(tuple, answers))) > 8, "answers vary"
    changed = [
        ["ba" if n % 6 == 5 else word for n, word in enumerate(answer)]
        for answer in answers
    ]
    path.write_text("".join(" ".join(draft) + "\n" for draft in changed))
    return path


@pytest.mark.parametrize("name", FAMILIES)
def test_family(
    name: str, correction_data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    family = FAMILIES[name]
    dictionary = (correction_data / "dict.src.txt").read_text()
    for file, text in {
        "LANGUAGES": "ar\nsrc\ntgt\n",
        "PAIRS": "x-tgt,src-tgt",
        "DICTIONARY": dictionary,
    }.items():
        (tmp_path / file).write_text(text)
        family = family._replace(
            options=family.options.replace(file, str(tmp_path / file)),
            ours=family.ours.replace(file, str(tmp_path / file)),
        )
    paths = made(family, correction_data, tmp_path)
    run = partial(decode, family, correction_data, ":".join(map(str, paths)))
    stock = run(None, "--beam", 1, "--batch-size", 16)
    lengths = {len(answer.tokens) for answer in parse_generate(stock).values()}
    assert len(lengths) > 2, "answers end"
    drafts = write_drafts(stock, tmp_path / "drafts")
    found = run("iad", "--draft-file", drafts, "--batch-size", 1)
    assert_same_hypotheses(found, stock)
    assert iterations(found) < 0.7
    assert "fairseq's own" not in caplog.text, "the engine decodes"
    beam = [*family.search.split(), "--nbest", 4, "--batch-size", 16]
    assert_same_lists(run("aggressive-beam", *beam), run(None, *beam), 4)


COPYING = (
    "--arch transformer --encoder-learned-pos --decoder-learned-pos --share-all-embeddings --max-source-positions 64 "
    "--max-target-positions 64"
)
COPYING_SIZES = (
    SIZES.replace("64", "128").replace("32", "64").replace("layers 2", "layers 1")
)


def test_the_source_is_copied_past_the_language_tokens(
    correction_model: ToyModel, tmp_path: Path
) -> None:
    """A corrector's weights in a model of several languages, with rows for the languages' tokens."""
    languages = f"--langs src,tgt --lang-pairs src-tgt {TOKENS}"
    family = Family(COPYING, MULTI, languages, "cfg")
    data = correction_model.data
    [path] = made(family, data, tmp_path, COPYING_SIZES)
    state = read_checkpoint(path)
    trained = read_checkpoint(correction_model.checkpoint)["model"]
    for key, value in state["model"].items():
        value[: len(trained[key])] = trained[key]
        value[len(trained[key]) :] = 0  # tokens beside the text
    torch.save(state, path)
    stock = decode(family, data, path, None, "--beam", 1)
    found = decode(family, data, path, "iad", "--batch-size", 1, "--drafts", "whole")
    assert_same_hypotheses(found, stock)
    assert sum(sentence.steps == 1 for sentence in parse_generate(found).values()) > 4
    assert iterations(found) < 0.8

    model = load(
        path, data, source_lang="src", target_lang="tgt", task=MULTI, device="cpu"
    )
    lines = (data.parent / "test.src").read_text("utf-8").splitlines()
    answers = [answer.tokens for _, answer in sorted(parse_generate(stock).items())]
    results = model.decode(lines, mode="iad", max_len_b=12)
    assert [result.text.split() for result in results] == answers


def make_speech(folder: Path) -> Path:
    """Words as four frames each, with noise, in one of several languages; dictionary and configuration beside them."""
    rng = np.random.default_rng(1)
    voices = rng.normal(size=(12, 4, 8))
    rows = ["id\taudio\tn_frames\ttgt_text\ttgt_lang"]
    for number in range(36):
        words = rng.integers(12, size=rng.integers(1, 7))
        frames = np.concatenate([voices[word] for word in words])
        np.save(
            folder / f"{number}.npy",
            (frames + 0.1 * rng.normal(size=frames.shape)).astype(np.float32),
        )
        text = " ".join(f"w{word}" for word in words)
        rows.append(f"test{number}\t{number}.npy\t{len(frames)}\t{text}\tde")
    (folder / "test.tsv").write_text("\n".join(rows) + "\n")
    (folder / "dict.txt").write_text(
        "".join(f"w{word} 1\n" for word in range(12)) + "<lang:de> 1\n"
    )
    settings = {
        "vocab_filename": "dict.txt",
        "audio_root": folder,
        "input_feat_per_channel": 8,
    }
    lines = [
        f"{name}: {value}"
        for name, value in {**settings, "prepend_tgt_lang_tag": "true"}.items()
    ]
    (folder / "config.yaml").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("arch", ["s2t_transformer_s", "convtransformer_espnet"])
def test_speech(arch: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As MuST-C's models, whose outputs begin with their language."""
    data = make_speech(tmp_path)
    family = Family(
        f"--arch {arch}", "speech_to_text", languages="--max-source-positions 600"
    )
    [path] = made(family, data, tmp_path)
    run = partial(decode, family, data, path)
    stats = tmp_path / "stats.jsonl"
    for size in (1, 16):  # the scores of speech depend on the batch
        batch = ["--batch-size", size, "--prefix-size", 1]
        stock = run(None, "--beam", 1, *batch)
        drafts = write_drafts(stock, tmp_path / "drafts")
        assert_same_hypotheses(run("greedy", *batch, "--decoding-stats", stats), stock)
        found = run("iad", *batch, "--draft-file", drafts)
        assert_same_hypotheses(found, stock)
        assert iterations(found) < 0.9
        lists = ["--beam", 5, "--nbest", 5, *batch]
        assert_same_lists(run("aggressive-beam", *lists), run(None, *lists), 5)
    assert "fairseq's own" not in caplog.text, "the engine decodes the text"
    records = list(map(json.loads, stats.read_text().splitlines()))
    assert all(record["source_length"] % 4 == 0 for record in records), "frames"
    with refused_with("--decoding aggressive drafts from the source's text"):
        run("aggressive")


def test_what_is_too_large_is_refused_by_name(
    correction_data: Path, tmp_path: Path
) -> None:
    """M2M-100's 12B with its pipeline, and NLLB's mixture of experts."""
    family = Family(
        f"--arch transformer {PRE_NORM}",
        MULTI,
        f"--langs src,tgt --lang-pairs src-tgt {TOKENS}",
        "cfg",
    )
    [path] = made(family, correction_data, tmp_path)
    pipeline = ["--pipeline-model-parallel", "--distributed-no-spawn"]
    with refused_with("cannot honour --pipeline-model-parallel"):
        decode(family, correction_data, path, "greedy", *pipeline)
    state = read_checkpoint(path)
    for number in range(2):
        state["model"][f"encoder.layers.1.moe_layer.experts.{number}.fc1.weight"] = (
            torch.zeros(2)
        )
    torch.save(state, path)
    with refused_with("a mixture of experts"):
        decode(family, correction_data, path, "greedy")
