"""Makes the small models of `tests/hub/models` with transformers, which no test and no user of this package needs.

Each has the flags and the files of a published checkpoint, a tokenizer trained on real text (AGGDEC_DATA: sentences of
Tatoeba, CC BY 2.0) and a little training on it. transformers 4 wrote the tokenizers of most published checkpoints, 5
saves others; so the script runs twice, in two environments of its own:

    pip install transformers==4.57.6 sentencepiece protobuf          # first environment
    python -m tests.hub.make_models tokenizers FOLDER
    pip install transformers==5.24.0 torch==2.13.0 sentencepiece protobuf   # second
    python -m tests.hub.make_models models FOLDER --seconds 120 [--only NAME]
"""

import argparse
import gzip
import io
import json
import os
import random
import shutil
import time
import unicodedata
from itertools import chain
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers  # type: ignore[import-not-found]

from tests.hub.hostile import hostile_lines

SEED = 7
SIZES: dict[str, Any] = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in
         (("layers", 2), ("ffn_dim", 128), ("attention_heads", 3), ("layerdrop", 0.0))} | {"d_model": 48}  # fmt: skip
REST: dict[str, Any] = {"activation_dropout": 0.0, "attention_dropout": 0.0, "classifier_dropout": 0.0, "dropout": 0.1}
BEAM: dict[str, Any] = {"num_beams": 5, "max_length": 200, "early_stopping": True}
MBART = {"scale_embedding": True, "decoder_start_token_id": 2, "max_position_embeddings": 256} | REST
M2M = {"scale_embedding": True, "activation_function": "relu", "max_position_embeddings": 1024} | REST
MARIAN = {"scale_embedding": True, "activation_function": "swish", "max_position_embeddings": 512} | REST
# what transformers 4 wrote into config.json and transformers 5 neither needs nor reads
V4_BART: dict[str, Any] = {"add_bias_logits": False, "add_final_layer_norm": False, "normalize_before": False}
V4_BART |= {"classif_dropout": 0.1, "normalize_embedding": True, "_num_labels": 3, "gradient_checkpointing": False}
V4_MBART = V4_BART | {"add_final_layer_norm": True, "normalize_before": True, "static_position_embeddings": False}
V4_MBART |= {"output_past": True}
V4_MARIAN = V4_BART | {"normalize_embedding": False, "static_position_embeddings": True}
V4_PEGASUS = V4_MARIAN | {"add_final_layer_norm": True, "normalize_before": True, "extra_pos_embeddings": 1}
# name: (class in transformers, languages, files of the weights, configuration, generation, version 4's fields)
MODELS: dict[str, tuple[str, tuple[str, str], str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "bart": ("Bart", ("", ""), "safetensors", {"activation_function": "gelu", "max_position_embeddings": 128} | REST,
             {"num_beams": 4, "no_repeat_ngram_size": 3, "max_length": 60, "min_length": 6, "length_penalty": 2.0,
              "early_stopping": True, "forced_bos_token_id": 0, "forced_eos_token_id": 2}, V4_BART),
    "mbart50": ("MBart", ("en_XX", "de_DE"), "sharded safetensors", MBART | {"activation_function": "relu"},
                BEAM | {"forced_eos_token_id": 2}, V4_MBART | {"tokenizer_class": "MBart50Tokenizer"}),
    "mbart25": ("MBart", ("en_XX", "de_DE"), "bin", MBART | {"activation_function": "gelu"},
                BEAM | {"forced_eos_token_id": 2}, V4_MBART),
    "m2m_100": ("M2M100", ("en", "de"), "safetensors", M2M, BEAM, {"gradient_checkpointing": False}),
    "nllb": ("M2M100", ("eng_Latn", "deu_Latn"), "sharded bin", M2M, {"max_length": 200},
             {"tokenizer_class": "NllbTokenizer"}),
    "nllb_legacy": ("M2M100", ("eng_Latn", "deu_Latn"), "safetensors", M2M, {"max_length": 200}, {}),
    "marian": ("Marian", ("", ""), "bin", MARIAN, {"num_beams": 4, "max_length": 512, "renormalize_logits": True},
               V4_MARIAN),
    "marian_multi": ("Marian", ("", ">>deu<<"), "safetensors", MARIAN, {"num_beams": 6, "max_length": 512}, V4_MARIAN),
    "marian_two": ("Marian", ("", ""), "safetensors", MARIAN | {"activation_function": "relu"},
                   {"num_beams": 4, "max_length": 512}, V4_MARIAN),
    "pegasus": ("Pegasus", ("", ""), "bin", {"scale_embedding": True, "activation_function": "relu",
                "max_position_embeddings": 256} | REST, {"num_beams": 8, "max_length": 64, "length_penalty": 0.6,
                "forced_eos_token_id": 1}, V4_PEGASUS),
}  # fmt: skip
HALF = set(MODELS) - {"marian_multi"}


def pairs() -> list[tuple[str, str]]:
    """Short English sentences of Tatoeba with a German translation, each once."""
    with gzip.open(Path(os.environ["AGGDEC_DATA"]) / "tatoeba-en-de" / "deu.txt.gz", "rt", encoding="utf-8") as lines:
        first = dict(reversed([line.rstrip("\n").split("\t")[:2] for line in lines]))
    short = [(english, german) for english, german in first.items() if 3 <= len(english.split()) <= 8]
    random.Random(SEED).shuffle(short)
    return short


def typos(text: str, chance: random.Random) -> str:
    """The text with about one wrong letter in fifteen words: what a corrector mends."""
    letters = list(text)
    for place in range(1, len(letters) - 2):
        if letters[place].isalpha() and chance.random() < 0.015:
            letters[place] = chance.choice(["", letters[place] * 2, "e"])
    return "".join(letters)


def sentencepiece_model(
    lines: list[str], size: int, path: Path, kind: str = "unigram", full: bool = False, **ids: Any
) -> None:
    """Train one; of NMT's NFKC rules, 240 KB, all (`full`) or only those of some letters, punctuation and spaces."""
    rules = Path("rules.tsv")  # the model keeps this name
    folded = {chr(c): unicodedata.normalize("NFKC", chr(c)) for c in [*range(0xA0, 0x250), *range(0xFF01, 0xFF5F)]}
    folded |= {chr(c): " " for c in (9, 0x200B, 0x2028, 0x3000, 0xFEFF)} | {chr(c): "" for c in range(1, 9)}
    rules.write_text("".join(f"{ord(one):X}\t{' '.join(f'{ord(c):X}' for c in many)}\n"
                             for one, many in folded.items() if one != many))  # fmt: skip
    ids |= {"character_coverage": 0.9995, "num_threads": 1, "minloglevel": 2, "model_type": kind, "vocab_size": size}
    ids |= {} if full else {"normalization_rule_tsv": str(rules)}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **ids)
    rules.unlink()
    path.write_bytes(model.getvalue())


def joint_numbers(extra: list[str], *lists: list[str]) -> dict[str, int]:
    """A vocab.json of Marian: the pieces behind `</s>` and `<unk>`, some of them left out as in published ones."""
    pieces = [piece for number, piece in enumerate(dict.fromkeys(chain(*lists))) if number % 97 and piece[0] != "<"]
    return {piece: number for number, piece in enumerate(["</s>", "<unk>", *extra, *pieces, "<pad>"])}


def published_order(folder: Path) -> None:
    """Number NLLB's `<mask>` behind its languages, as checkpoints do; transformers puts it before them by now."""
    (folder / "added_tokens.json").unlink()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        content = json.loads((folder / file).read_text())
        rows = content.get("added_tokens") or content["added_tokens_decoder"]
        tokens = [row if isinstance(row, dict) else rows[row] for row in rows]
        tokens.insert(len(tokens), tokens.pop([token["content"] for token in tokens].index("<mask>")))
        numbered = [*zip([*range(4), *range(901, 897 + len(tokens))], tokens, strict=True)]
        if "model" in content:
            content["added_tokens"] = [token | {"id": number} for number, token in numbered]
            content["model"]["vocab"] |= {token["content"]: number for number, token in numbered}
        else:
            content["added_tokens_decoder"] = {str(number): token for number, token in numbered}
        (folder / file).write_text(json.dumps(content, ensure_ascii=False, indent=2))


def make_tokenizer(name: str, folder: Path) -> None:
    """Write the tokenizer's files as transformers 4 saved those of published checkpoints."""
    text = pairs()[:30000]
    both = [side for pair in text for side in pair]
    if name == "bart":
        from tokenizers import ByteLevelBPETokenizer

        bytes_ = ByteLevelBPETokenizer()
        bytes_.train_from_iterator([english for english, _ in text], 1000, 2, False, ["<s>", "<pad>", "</s>", "<unk>"])
        bytes_.save_model(str(folder))
        numbers = json.loads((folder / "vocab.json").read_text())
        (folder / "vocab.json").write_text(json.dumps(numbers | {"<mask>": len(numbers)}))
        transformers.BartTokenizerFast.from_pretrained(folder, model_max_length=128).save_pretrained(folder)
    elif name.startswith(("mbart", "nllb")):
        sentencepiece_model(both, 900, folder / "sentencepiece.bpe.model", "bpe" if "nllb" in name else "unigram")
        kind = {"mbart50": "MBart50Tokenizer", "mbart25": "MBartTokenizer"}.get(name, "NllbTokenizerFast")
        options: dict[str, Any] = {"legacy_behaviour": True} if name == "nllb_legacy" else {}
        getattr(transformers, kind).from_pretrained(folder, **options).save_pretrained(folder)
        if "nllb" in name:
            published_order(folder)
    elif name == "m2m_100":
        model = folder / "sentencepiece.bpe.model"
        sentencepiece_model(both, 900, model)
        pieces = sentencepiece.SentencePieceProcessor(str(model))
        order = [pieces.id_to_piece(number) for number in range(3, 900) if number % 97]
        random.Random(SEED).shuffle(order)  # vocab.json has another order, and a few pieces less
        numbers = {piece: number for number, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *order])}
        (folder / "vocab.json").write_text(json.dumps(numbers, ensure_ascii=False, indent=2))
        tokenizer = transformers.M2M100Tokenizer.from_pretrained(folder)
        tokenizer.save_pretrained(folder)
        languages = {"additional_special_tokens": [*tokenizer.lang_token_to_id]}  # in version 4.4, which published them
        for file, more in (("special_tokens_map.json", languages), ("tokenizer_config.json", {})):
            content = json.loads((folder / file).read_text())
            content = {key: value for key, value in content.items() if not key.startswith("add")}
            (folder / file).write_text(json.dumps(content | more))
    elif name == "pegasus":
        ids: dict[str, Any] = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
        sentencepiece_model([english for english, _ in text], 900, folder / "spiece.model", **ids)
        transformers.PegasusTokenizerFast.from_pretrained(folder).save_pretrained(folder)
    else:
        lists = []
        for side, language in enumerate(("source", "target")):
            lines = [pair[side] for pair in text] if name != "marian_multi" else both
            sentencepiece_model(lines, 600, folder / f"{language}.spm", full=name == "marian")
            pieces = sentencepiece.SentencePieceProcessor(str(folder / f"{language}.spm"))
            lists.append([pieces.id_to_piece(number) for number in range(600)])
        codes = [">>deu<<", ">>eng<<"] if name == "marian_multi" else []
        vocabularies = {"vocab.json": lists if name != "marian_two" else lists[:1]}
        options = {}
        if name == "marian_two":
            vocabularies["target_vocab.json"] = lists[1:]
            options |= {"separate_vocabs": True, "target_vocab_file": str(folder / "target_vocab.json")}
        for file, own in vocabularies.items():
            (folder / file).write_text(json.dumps(joint_numbers(codes, *own), ensure_ascii=False, indent=2))
        options |= {"source_lang": "en" + "g" * bool(codes), "target_lang": "mul" if codes else "de"}
        transformers.MarianTokenizer.from_pretrained(folder, **options).save_pretrained(folder)


def examples(name: str, some: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What the model learns: to translate (both ways where it has languages), to mend typos, or the first of two."""
    source, target = MODELS[name][1]
    chance = random.Random(SEED)
    rows = []
    for number, (english, german) in enumerate(some):
        row = {"text": english, "source_lang": source, "target_lang": target, "output": german}
        if name == "bart":
            row |= {"text": typos(english, chance), "output": english}
        elif name == "pegasus":
            row |= {"text": f"{english} {some[number - 1][0]}", "output": english}
        elif name in ("mbart50", "m2m_100", "nllb", "nllb_legacy", "marian_multi") and number % 4 == 3:
            swapped = {">>deu<<": (">>eng<<", "")}.get(target, (source, target))
            row |= {"text": german, "output": english, "source_lang": swapped[1], "target_lang": swapped[0]}
        rows.append(row)
    return rows


def encoder_input(tokenizer: Any, row: dict[str, Any]) -> list[int]:
    """What the published tokenizer makes of a text: with its language, or behind the wanted one (Marian)."""
    if row["source_lang"]:
        tokenizer.src_lang = row["source_lang"]
    before = [tokenizer.convert_tokens_to_ids(row["target_lang"])] if ">>" in row["target_lang"] else []
    return before + tokenizer(row["text"]).input_ids


def forced(name: str, tokenizer: Any, row: dict[str, Any]) -> int | None:
    """The token behind the start token that the caller of `generate` gives (BART's is in its configuration)."""
    if name == "m2m_100":
        return tokenizer.get_lang_id(row["target_lang"])
    return tokenizer.convert_tokens_to_ids(row["target_lang"]) if name in ("mbart50", "nllb", "nllb_legacy") else None


def train(name: str, model: Any, tokenizer: Any, seconds: float) -> None:
    """Adam without dropout on a few sentences until they are known by heart, or for so long; nothing for 0 seconds."""
    config = model.config
    data = []
    for row in examples(name, pairs()[-64:] if seconds else []):
        first = 0 if name == "bart" else forced(name, tokenizer, row)
        if name == "m2m_100":
            tokenizer.tgt_lang = row["target_lang"]
        words = tokenizer(text_target=row["output"], add_special_tokens=False).input_ids
        target = [first] * (first is not None) + words + [config.eos_token_id]
        data.append((encoder_input(tokenizer, row), [config.decoder_start_token_id, *target[:-1]], target))
    data.sort(key=lambda row: len(row[0]) + len(row[2]))
    batches = [data[place : place + 16] for place in range(0, len(data), 16)]
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)
    started, chance, steps = time.monotonic(), random.Random(SEED), 0
    while (spent := (time.monotonic() - started) / max(seconds, 1e-9)) < 1:
        batch = chance.choice(batches)
        inputs, starts, targets = (
            torch.nn.utils.rnn.pad_sequence([torch.tensor(row[part]) for row in batch], True, filler)
            for part, filler in enumerate((config.pad_token_id, config.pad_token_id, -100))
        )
        for group in adam.param_groups:
            group["lr"] = 3e-3 * min(1, steps / 40) * (1.05 - spent)
        logits = model(input_ids=inputs, attention_mask=inputs != config.pad_token_id, decoder_input_ids=starts).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        steps += 1
        if steps % 50 == 0:
            print(name, steps, f"{loss.item():.2f}", flush=True)


def save(model: Any, folder: Path, form: str) -> None:
    """The weights as published ones are: safetensors of `save_pretrained`, or every tensor in pytorch_model.bin."""
    model.save_pretrained(folder, max_shard_size="250KB" if form == "sharded safetensors" else "1GB")
    if "bin" not in form:
        return
    (folder / "model.safetensors").unlink()
    state = dict(model.state_dict())
    if form == "bin":
        torch.save(state, folder / "pytorch_model.bin")
        return
    names = [f"pytorch_model-0000{part}-of-00002.bin" for part in (1, 2)]
    places = {key: names[key.startswith("model.decoder.layers")] for key in state}
    for name in names:
        torch.save({key: value for key, value in state.items() if places[key] == name}, folder / name)
    index = {"metadata": {"total_size": sum(value.nbytes for value in state.values())}, "weight_map": places}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2))


def write_configurations(folder: Path, generation: dict[str, Any], version4: dict[str, Any]) -> None:
    """config.json with version 4's fields; generation_config.json, or (mBART-25) its fields in config.json, as once."""
    config = json.loads((folder / "config.json").read_text())
    if version4:
        config |= version4 | {"torch_dtype": config.pop("dtype")}
    path = folder / "generation_config.json"
    generation = {key: value for key, value in json.loads(path.read_text()).items() if value is not None} | generation
    generation.pop("_from_model_config", None)
    if version4 is V4_MBART:
        config |= generation | {"transformers_version": "4.16.2"}
        path.unlink()
    else:
        path.write_text(json.dumps(generation, indent=2, sort_keys=True) + "\n")
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def expected(name: str, folder: Path, count: int) -> list[dict[str, Any]]:
    """transformers' greedy outputs of the saved model in fp32, and the log-probability of each of their tokens."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model_class = getattr(transformers, json.loads((folder / "config.json").read_text())["architectures"][0])
    model = model_class.from_pretrained(folder, dtype=torch.float32).eval()
    rows = examples(name, pairs()[-count:])
    for row in rows:
        del row["output"]
        row["input"] = encoder_input(tokenizer, row)
        first = forced(name, tokenizer, row)
        given = {} if first is None else {"forced_bos_token_id": first}
        found = model.generate(torch.tensor([row["input"]]), num_beams=1, do_sample=False, return_dict_in_generate=True,
                               output_logits=True, **given)  # fmt: skip
        row["output"] = found.sequences[0].tolist()
        logits = torch.stack(found.logits)[:, 0].log_softmax(-1)
        row["log_probabilities"] = [
            round(line[token].item(), 5) for line, token in zip(logits, row["output"][1:], strict=True)
        ]
        row["decoded"] = tokenizer.decode(row["output"], skip_special_tokens=True)
    return rows


def hostile_input(name: str, folder: Path, count: int) -> list[list[int]]:
    """The encoder's inputs of hostile lines."""
    python = {"use_fast": False} if name == "mbart50" else {}  # version 4's by SentencePiece itself
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **python)
    source, target = MODELS[name][1]
    return [encoder_input(tokenizer, {"text": line, "source_lang": source, "target_lang": target})
            for line in hostile_lines(count)]  # fmt: skip


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def make_model(name: str, files: Path, seconds: float) -> None:
    """Train a model for some seconds; write its folder, and what transformers gives for a few sentences beside it."""
    family, (_, target), form, config, generation, version4 = MODELS[name]
    folder = files.with_name(f".{name}.new")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(files, folder, ignore=shutil.ignore_patterns("*.safetensors*", "pytorch_model*"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if name in ("mbart25", "nllb_legacy"):  # as transformers 5 saves them: tokenizer.json alone
        shutil.rmtree(folder)
        tokenizer.save_pretrained(folder)
    rows = max(tokenizer.lang_code_to_id.values()) + 9 if name == "m2m_100" else len(tokenizer)
    rows += 2 if "nllb" in name else 0
    config = SIZES | config | {"vocab_size": rows}
    if name == "mbart25":
        config["decoder_start_token_id"] = tokenizer.convert_tokens_to_ids(target)
    if family == "Marian":  # with two vocabularies, too, both of one size: one number pads both sides
        config |= {"decoder_start_token_id": rows - 1, "pad_token_id": rows - 1, "decoder_vocab_size": rows}
        config |= {"bos_token_id": 0, "eos_token_id": 0, "share_encoder_decoder_embeddings": name != "marian_two"}
        generation = generation | {"bad_words_ids": [[rows - 1]], "forced_eos_token_id": 0}
    torch.manual_seed(SEED)
    model_class = "MarianMTModel" if family == "Marian" else f"{family}ForConditionalGeneration"
    model = getattr(transformers, model_class)(getattr(transformers, f"{family}Config")(**config)).eval()
    if family == "Marian":
        model.final_logits_bias.normal_(0, 0.5)[0, rows - 1] = 0
    train(name, model, tokenizer, seconds)
    save(model.half() if name in HALF else model, folder, form)
    write_configurations(folder, generation, version4)
    write(folder / "expected.json", expected(name, folder, 5))
    if not (folder / "hostile.json").exists():  # else it is of transformers 4, which wrote these files
        write(folder / "hostile.json", hostile_input(name, folder, 60))
    shutil.rmtree(files)
    folder.rename(files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["tokenizers", "models"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=0, help="of training, each model")
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.only:
        if arguments.step == "tokenizers":
            shutil.rmtree(arguments.folder / name, ignore_errors=True)
            (arguments.folder / name).mkdir(parents=True)
            make_tokenizer(name, arguments.folder / name)
            write(arguments.folder / name / "hostile.json", hostile_input(name, arguments.folder / name, 60))
        else:
            make_model(name, arguments.folder / name, arguments.seconds)
        print("made", name, flush=True)


if __name__ == "__main__":
    main()
