"""Makes the small models of `tests/hub/models` with transformers, which no test and no user of this package needs.

Each has the flags and the files of a published checkpoint: config.json and generation_config.json, in the form of their
time, are those in `tests/hub/models`, and so are the names of the files of weights. Its tokenizer is trained on real
text (AGGDEC_DATA: sentences of Tatoeba, CC BY 2.0), and the model a little. transformers 4 wrote the tokenizers of most
published checkpoints, 5 saves others; so the script runs twice, in two environments of its own:

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
MODELS = Path(__file__).parent / "models"
NAMES = sorted(path.parent.name for path in MODELS.glob("*/config.json"))
LANGUAGES = {
    **dict.fromkeys(("mbart50", "mbart25"), ("en_XX", "de_DE")),
    **dict.fromkeys(("nllb", "nllb_legacy"), ("eng_Latn", "deu_Latn")),
    **{"m2m_100": ("en", "de"), "marian_multi": ("", ">>deu<<")},
}
"""of source and target, by transformers' names; the others have none"""


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
    source, target = LANGUAGES.get(name, ("", ""))
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


def save(model: Any, shipped: Path, folder: Path) -> None:
    """Write the weights to files as those in `shipped`: `save_pretrained`'s, or every tensor in pytorch_model.bin."""
    is_sharded = any(shipped.glob("*.index.json"))
    if any(shipped.glob("*.safetensors")):
        return model.save_pretrained(folder, max_shard_size="250KB" if is_sharded else "1GB")
    state = dict(model.state_dict())
    if not is_sharded:
        return torch.save(state, folder / "pytorch_model.bin")
    names = [f"pytorch_model-0000{part}-of-00002.bin" for part in (1, 2)]
    places = {key: names[key.startswith("model.decoder.layers")] for key in state}
    for name in names:
        torch.save({key: value for key, value in state.items() if places[key] == name}, folder / name)
    index = {"metadata": {"total_size": sum(value.nbytes for value in state.values())}, "weight_map": places}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2))


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
    source, target = LANGUAGES.get(name, ("", ""))
    return [encoder_input(tokenizer, {"text": line, "source_lang": source, "target_lang": target})
            for line in hostile_lines(count)]  # fmt: skip


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def make_model(name: str, files: Path, seconds: float) -> None:
    """Train a model for some seconds; write its folder, and what transformers gives for a few sentences beside it."""
    shipped, folder = MODELS / name, files.with_name(f".{name}.new")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(files, folder, ignore=shutil.ignore_patterns("*.safetensors*", "pytorch_model*"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if name in ("mbart25", "nllb_legacy"):  # as transformers 5 saves them: tokenizer.json alone
        shutil.rmtree(folder)
        tokenizer.save_pretrained(folder)
    config = transformers.AutoConfig.from_pretrained(shipped)
    precision = config.dtype
    torch.manual_seed(SEED)
    model = transformers.AutoModelForSeq2SeqLM.from_config(config, dtype=torch.float32).eval()
    if config.model_type == "marian":
        model.final_logits_bias.normal_(0, 0.5)[0, config.pad_token_id] = 0
    train(name, model, tokenizer, seconds)
    save(model.to(precision), shipped, folder)
    for file in ("config.json", "generation_config.json"):
        (folder / file).unlink(missing_ok=True)
        if (shipped / file).exists():  # mbart25 has the search in config.json
            shutil.copy(shipped / file, folder)
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
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
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
