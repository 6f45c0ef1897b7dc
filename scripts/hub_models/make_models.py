"""Makes the small models of `tests/hub/models` with transformers, which no test and no user of this package needs.

Each has the flags and the files of a published checkpoint: configurations, in the form of their time, and the names of
the files of weights are those in `tests/hub/models`. Its tokenizer is trained on real text (AGGDEC_DATA: sentences of
Tatoeba, CC BY 2.0), and the model a little. transformers 4 wrote the tokenizers of most published checkpoints, 5 saves
others; so the script runs twice, in two environments of its own, in the root of the checkout:

    pip install transformers==4.57.6 sentencepiece protobuf          # first environment
    python -m scripts.hub_models.make_models tokenizers FOLDER
    pip install transformers==5.24.0 torch==2.13.0 sentencepiece protobuf   # second
    python -m scripts.hub_models.make_models models FOLDER --steps 1000 [--only NAME]
"""

import argparse
import gzip
import io
import json
import os
import random
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
import torch
import transformers  # type: ignore[import-not-found]
from safetensors.torch import save_file

from scripts.hub_models.hostile import hostile_lines

SEED = 7
MODELS = Path("tests/hub/models")
NAMES = sorted(path.parent.name for path in MODELS.glob("*/config.json"))
LANGUAGES = {
    **dict.fromkeys(("mbart50", "mbart25"), ("en_XX", "de_DE")),
    **dict.fromkeys(("nllb", "nllb_legacy"), ("eng_Latn", "deu_Latn")),
    **{"m2m_100": ("en", "de"), "marian_multi": ("", ">>deu<<")},
}
"""of source and target, by transformers' names; the others have none"""
FIRST = ["<s>", "<pad>", "</s>", "<unk>"]
T5 = ("byt5", "flan_t5", "madlad", "mt5", "t5")
PROMPT = {"flan_t5": "Fix typos: ", "madlad": "<2de> "}
"""before each text, as users of instructed models write it"""


def pairs() -> list[tuple[str, str]]:
    """Short English sentences of Tatoeba with a German translation, each once."""
    with gzip.open(
        Path(os.environ["AGGDEC_DATA"]) / "tatoeba-en-de" / "deu.txt.gz",
        "rt",
        encoding="utf-8",
    ) as lines:
        first = dict(reversed([line.rstrip("\n").split("\t")[:2] for line in lines]))
    short = [
        (english, german)
        for english, german in first.items()
        if 3 <= len(english.split()) <= 8
    ]
    random.Random(SEED).shuffle(short)
    return short


def typos(text: str, chance: random.Random) -> str:
    """The text with about one wrong letter in fifteen words: what a corrector mends."""
    letters = list(text)
    for place in range(1, len(letters) - 2):
        if letters[place].isalpha() and chance.random() < 0.015:
            letters[place] = chance.choice(["", letters[place] * 2, "e"])
    return "".join(letters)


def pieces(
    lines: list[str], size: int, path: Path, full: bool = False, **options: Any
) -> list[str]:
    """Train SentencePiece; its pieces but for the special ones.

    `full`: with all of NMT's NFKC rules, 240 KB, not only those of some letters, punctuation and spaces.
    """
    rules = Path("rules.tsv")  # the model keeps this name
    folded = {
        chr(c): unicodedata.normalize("NFKC", chr(c))
        for c in [*range(0xA0, 0x250), *range(0xFF01, 0xFF5F)]
    }
    folded |= {chr(c): " " for c in (9, 0x200B, 0x2028, 0x3000, 0xFEFF)} | {
        chr(c): "" for c in range(1, 9)
    }
    rules.write_text("".join(f"{ord(one):X}\t{' '.join(f'{ord(c):X}' for c in many)}\n"
                             for one, many in folded.items() if one != many))  # fmt: skip
    options |= {
        "character_coverage": 0.9995,
        "num_threads": 1,
        "minloglevel": 2,
        "vocab_size": size,
    }
    options |= {} if full else {"normalization_rule_tsv": str(rules)}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, **options
    )
    rules.unlink()
    path.write_bytes(model.getvalue())
    trained = sentencepiece.SentencePieceProcessor(str(path))
    return [trained.id_to_piece(number) for number in range(3, size)]


def write_numbers(path: Path, *tokens: str) -> None:
    """Write a vocab.json, which has other numbers than SentencePiece and, as published ones, a few pieces less."""
    some = [
        token
        for number, token in enumerate(dict.fromkeys(tokens))
        if number % 97 or not number
    ]
    write(path, {token: number for number, token in enumerate(some)})


def make_tokenizer(name: str, folder: Path) -> None:
    """Write the tokenizer's files as transformers 4 saved those of published checkpoints."""
    shipped = MODELS / name.removesuffix("_legacy")
    config = json.loads((shipped / "tokenizer_config.json").read_text("utf-8"))
    if name == "mbart25":  # whose own is of transformers 5
        config = {"tokenizer_class": "MBartTokenizer"}
    elif name == "nllb_legacy":
        config["legacy_behaviour"] = True
    write(folder / "tokenizer_config.json", config)
    if (shipped / "special_tokens_map.json").exists():
        shutil.copy(shipped / "special_tokens_map.json", folder)
    text = pairs()[:30000]
    english = [one for one, _ in text]
    both = [side for pair in text for side in pair]
    if name == "bart":
        bpe = tokenizers.ByteLevelBPETokenizer()
        bpe.train_from_iterator(english, 1000, 2, False, FIRST)
        bpe.save_model(str(folder))
        write(folder / "vocab.json", bpe.get_vocab() | {"<mask>": bpe.get_vocab_size()})
    elif name == "byt5":
        pass  # its tokens are bytes
    elif name == "madlad":
        user = {"user_defined_symbols": ["<2de>", "<2en>"]}
        pieces(both, 900, folder / "spiece.model", **user)
    elif name == "pegasus" or name in T5:
        pieces(
            both if name in T5 else english,
            900,
            folder / "spiece.model",
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
        )
    elif config["tokenizer_class"] == "MarianTokenizer":
        lines = {"source": english, "target": [german for _, german in text]}
        if name == "marian_multi":
            lines = dict.fromkeys(lines, both)
        source, target = (
            pieces(own, 600, folder / f"{side}.spm", name == "marian")
            for side, own in lines.items()
        )
        first = [
            "</s>",
            "<unk>",
            *([">>deu<<", ">>eng<<"] if name == "marian_multi" else []),
        ]
        if name == "marian_two":
            write_numbers(folder / "target_vocab.json", *first, *target, "<pad>")
            target = []
        write_numbers(folder / "vocab.json", *first, *source, *target, "<pad>")
    else:
        kind = "bpe" if "nllb" in name else "unigram"
        order = pieces(both, 900, folder / "sentencepiece.bpe.model", model_type=kind)
        if name == "m2m_100":
            random.Random(SEED).shuffle(order)
            write_numbers(folder / "vocab.json", *FIRST, *order)
    path = folder / "tokenizer.json"
    if (shipped / path.name).exists():
        transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer.save(
            str(path)
        )
    if name == "madlad":  # published when languages were pieces like others
        fields = json.loads(path.read_text("utf-8"))
        fields["added_tokens"] = [
            token for token in fields["added_tokens"] if token["special"]
        ]
        write(path, fields)


def examples(name: str, some: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What the model learns: to translate (both ways where it has languages), to mend typos, or the first of two."""
    source, target = LANGUAGES.get(name, ("", ""))
    chance = random.Random(SEED)
    rows = []
    for number, (english, german) in enumerate(some):
        row = {
            "text": english,
            "source_lang": source,
            "target_lang": target,
            "output": german,
        }
        if name in ("bart", "flan_t5"):
            row |= {"text": typos(english, chance), "output": english}
        elif name == "pegasus":
            row |= {"text": f"{english} {some[number - 1][0]}", "output": english}
        elif (
            name in ("mbart50", "m2m_100", "nllb", "nllb_legacy", "marian_multi")
            and number % 4 == 3
        ):
            swapped = {">>deu<<": (">>eng<<", "")}.get(target, (source, target))
            row |= {
                "text": german,
                "output": english,
                "source_lang": swapped[1],
                "target_lang": swapped[0],
            }
        rows.append(row)
    return rows


def encoder_input(name: str, tokenizer: Any, row: dict[str, Any]) -> list[int]:
    """What the published tokenizer makes of a text: with its language, the wanted one (Marian) or a prompt."""
    if row["source_lang"]:
        tokenizer.src_lang = row["source_lang"]
    before = (
        [tokenizer.convert_tokens_to_ids(row["target_lang"])]
        if ">>" in row["target_lang"]
        else []
    )
    return before + tokenizer(PROMPT.get(name, "") + row["text"]).input_ids


def forced(name: str, tokenizer: Any, row: dict[str, Any]) -> int | None:
    """The token behind the start token that the caller of `generate` gives (BART's is in its configuration)."""
    if name == "m2m_100":
        return tokenizer.get_lang_id(row["target_lang"])
    return (
        tokenizer.convert_tokens_to_ids(row["target_lang"])
        if name in ("mbart50", "nllb", "nllb_legacy")
        else None
    )


def train(name: str, model: Any, tokenizer: Any, steps: int) -> None:
    """Adam without dropout on a few sentences; a thousand steps or so, and they are known by heart."""
    config = model.config
    data = []
    for row in examples(name, pairs()[-64:]):
        first = 0 if name == "bart" else forced(name, tokenizer, row)
        if name == "m2m_100":
            tokenizer.tgt_lang = row["target_lang"]
        words = tokenizer(text_target=row["output"], add_special_tokens=False).input_ids
        target = [first] * (first is not None) + words + [config.eos_token_id]
        data.append(
            (
                encoder_input(name, tokenizer, row),
                [config.decoder_start_token_id, *target[:-1]],
                target,
            )
        )
    data.sort(key=lambda row: len(row[0]) + len(row[2]))
    batches = [data[place : place + 16] for place in range(0, len(data), 16)]
    adam = torch.optim.AdamW(
        model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01
    )
    rate = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda step: min(1, step / 40) * (1.05 - step / max(steps, 1))
    )
    chance = random.Random(SEED)
    for _ in range(steps):
        batch = chance.choice(batches)
        inputs, starts, targets = (
            torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(row[part]) for row in batch], True, filler
            )
            for part, filler in enumerate(
                (config.pad_token_id, config.pad_token_id, -100)
            )
        )
        logits = model(
            input_ids=inputs,
            attention_mask=inputs != config.pad_token_id,
            decoder_input_ids=starts,
        ).logits
        adam.zero_grad()
        torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten()
        ).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        rate.step()


def save(model: Any, shipped: Path, folder: Path) -> None:
    """Write the weights to files as those in `shipped`: `save_pretrained`'s, or every tensor in pytorch_model.bin."""
    if shipped.name == "madlad":  # converted from T5X, without `shared.weight`
        state = model.state_dict()
        del state["shared.weight"], state["encoder.embed_tokens.weight"]
        return save_file(state, folder / "model.safetensors", {"format": "pt"})
    is_sharded = any(shipped.glob("*.index.json"))
    if any(shipped.glob("*.safetensors")):
        return model.save_pretrained(
            folder, max_shard_size="250KB" if is_sharded else "1GB"
        )
    state = dict(model.state_dict())
    if not is_sharded:
        return torch.save(state, folder / "pytorch_model.bin")
    names = [f"pytorch_model-0000{part}-of-00002.bin" for part in (1, 2)]
    places = {key: names[key.startswith("model.decoder.layers")] for key in state}
    for name in names:
        torch.save(
            {key: value for key, value in state.items() if places[key] == name},
            folder / name,
        )
    index = {
        "metadata": {"total_size": sum(value.nbytes for value in state.values())},
        "weight_map": places,
    }
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2))


def expected(name: str, folder: Path, count: int) -> list[dict[str, Any]]:
    """transformers' greedy outputs of the saved model in fp32, and the log-probability of each of their tokens."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    rows = examples(name, pairs()[-count:])
    for row in rows:
        del row["output"]
        row["input"] = encoder_input(name, tokenizer, row)
        first = forced(name, tokenizer, row)
        given = {} if first is None else {"forced_bos_token_id": first}
        if name in T5:  # whose configurations name no length
            given = {"max_new_tokens": 512}
        found = model.generate(torch.tensor([row["input"]]), num_beams=1, do_sample=False, return_dict_in_generate=True,
                               output_logits=True, **given)  # fmt: skip
        row["output"] = found.sequences[0].tolist()
        chosen = (
            torch.cat(found.logits).log_softmax(-1).gather(1, found.sequences.T[1:])
        )
        row["log_probabilities"] = [
            round(number, 5) for number in chosen[:, 0].tolist()
        ]
        row["decoded"] = tokenizer.decode(row["output"], skip_special_tokens=True)
    return rows


def hostile_input(name: str, folder: Path, count: int) -> list[list[int]]:
    """The encoder's inputs of hostile lines."""
    # version 4's by SentencePiece itself
    python = {"use_fast": False} if name in ("mbart50", "mt5") else {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **python)
    source, target = LANGUAGES.get(name, ("", ""))
    return [encoder_input(name, tokenizer, {"text": line, "source_lang": source, "target_lang": target})
            for line in hostile_lines(count)]  # fmt: skip


def logits(folder: Path) -> dict[str, Any]:
    """Of random texts, longer than the distances that T5 tells apart, a few logits here and there in fp32."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    chance = random.Random(SEED)
    inputs = [
        [*chance.choices(range(3, 300), k=length), model.config.eos_token_id]
        for length in (200, 30)
    ]
    outputs = [[0, *chance.choices(range(3, 300), k=160)] for _ in inputs]
    padded = torch.zeros(2, 201, dtype=torch.long)
    for row, tokens in zip(padded, inputs, strict=True):
        row[: len(tokens)] = torch.tensor(tokens)
    found = model(
        input_ids=padded,
        attention_mask=padded != 0,
        decoder_input_ids=torch.tensor(outputs),
    ).logits
    few = found[:, ::32, 3:9].tolist()
    return {"inputs": inputs, "outputs": outputs, "logits of 3 to 8, each 32nd": few}


def write(path: Path, content: Any) -> None:
    path.write_text(
        json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8"
    )


def make_model(name: str, files: Path, steps: int) -> None:
    """Train a model; write its folder, and what transformers gives for a few sentences beside it."""
    shipped = MODELS / name
    folder = files.with_name(f".{name}.new")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        files, folder, ignore=shutil.ignore_patterns("*.safetensors*", "pytorch_model*")
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    # as transformers 5 saves them: tokenizer.json alone
    if name in ("mbart25", "nllb_legacy", "flan_t5"):
        shutil.rmtree(folder)
        tokenizer.save_pretrained(folder)
    config = transformers.AutoConfig.from_pretrained(shipped)
    precision = config.dtype
    torch.manual_seed(SEED)
    model = transformers.AutoModelForSeq2SeqLM.from_config(
        config, dtype=torch.float32
    ).eval()
    if config.model_type == "marian":
        model.final_logits_bias.normal_(0, 0.5)[0, config.pad_token_id] = 0
    if not json.loads((shipped / "config.json").read_text("utf-8")).get(
        "tie_word_embeddings", True
    ):  # which version 5 ties until a checkpoint has both
        model.lm_head.weight = torch.nn.Parameter(
            0.2 * torch.randn_like(model.lm_head.weight)
        )
    train(name, model, tokenizer, steps)
    save(model.to(precision), shipped, folder)
    for file in ("config.json", "generation_config.json"):
        (folder / file).unlink(missing_ok=True)
        if (shipped / file).exists():  # mbart25 has the search in config.json
            shutil.copy(shipped / file, folder)
    write(folder / "expected.json", expected(name, folder, 5))
    if name in T5:
        write(folder / "logits.json", logits(folder))
    # else it is of transformers 4, which wrote these files
    if not (folder / "hostile.json").exists():
        write(folder / "hostile.json", hostile_input(name, folder, 60))
    shutil.rmtree(files)
    folder.rename(files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["tokenizers", "models"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=0, help="of training, each model")
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.only:
        if arguments.step == "tokenizers":
            shutil.rmtree(arguments.folder / name, ignore_errors=True)
            (arguments.folder / name).mkdir(parents=True)
            make_tokenizer(name, arguments.folder / name)
            write(
                arguments.folder / name / "hostile.json",
                hostile_input(name, arguments.folder / name, 60),
            )
        else:
            make_model(name, arguments.folder / name, arguments.steps)
        print("made", name, flush=True)


if __name__ == "__main__":
    main()
