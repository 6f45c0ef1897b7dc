"""Time a model of OPUS-MT's or Flan-T5's exact size in transformers, CTranslate2 and this plugin, in turns.

All decode the same sentences. Weights are random, outputs have a fixed number of tokens, and drafts are simulated:
those of `speculative` cost what the small model costs, and as many are accepted as --accepted says; `iad` copies the
output with --edit-ratio edits a token. It needs transformers and ctranslate2:

    pip install transformers ctranslate2
    python configs/shared/measuring/hub_speed.py --tokenizer tests/hub/models/marian --folder work/opus
        --json work/opus/speed.json
    python configs/shared/measuring/hub_speed.py --model flan-t5-base --tokenizer tests/hub/models/t5
        --folder work/flan-t5-base --json work/flan-t5-base/speed.json

`--tokenizer`: a folder with source.spm, target.spm and vocab.json, or of T5 with tokenizer.json; more tokens fill the
vocabulary. A mode that a program does not have on this processor gets a line that says so, and no run in the record.
"""

import argparse
import json
import shutil
import sys
from functools import cache
from pathlib import Path

import torch
import transformers
from ctranslate2.converters import TransformersConverter

from fairseq_aggdec import register
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.importing import import_checkpoint
from fairseq_aggdec.hub.tokenizers import read_tokenizer, symbol
from fairseq_aggdec.lab.bench.ctranslate2_runner import (
    CTranslate2Runner,
    TranslatorProcess,
)
from fairseq_aggdec.lab.bench.modes import ModeSpec, parse_modes
from fairseq_aggdec.lab.bench.random_models import random_sentences
from fairseq_aggdec.lab.bench.record import Record, run_of
from fairseq_aggdec.lab.bench.rounds import Output, compare
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import OracleSettings, Subject
from fairseq_aggdec.lab.bench.tables import identical_to_greedy

SYMBOLS = 58_101  # of opus-mt-en-de, <pad> included
SIDES = ("encoder", "decoder")
BASE = {"d_model": 512, "layers": (6, 6), "ffn": 2048, "heads": 8}
SMALL = {"d_model": 256, "layers": (6, 2), "ffn": 1536, "heads": 8}
T5_SYMBOLS = 32_128  # of all T5 but mT5 and ByT5
T5 = {
    "flan-t5-base": {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12},
    "flan-t5-large": {"d_model": 1024, "d_ff": 2816, "num_layers": 24, "num_heads": 16},
}
OPUS_MT = "opus-mt"
MODES = {OPUS_MT: "beam1,beam5,greedy,greedy@int8,speculative,aggressive-beam:5:0"}
MODES |= dict.fromkeys(T5, "beam1,greedy,iad,greedy@int8,iad@int8")


def write_t5(folder: Path, tokenizer: Path, size: dict) -> None:
    """A random T5 as transformers saves it, into a new folder."""
    shutil.copy(tokenizer / "tokenizer_config.json", folder)
    content = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    pieces = content["model"]["vocab"]
    pieces += [[f"w{number}", -99.0] for number in range(len(pieces), T5_SYMBOLS)]
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    config = transformers.T5Config(
        **size,
        d_kv=64,
        vocab_size=T5_SYMBOLS,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        decoder_start_token_id=0,
    )
    torch.manual_seed(1)
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)


def write_marian(folder: Path, tokenizer: Path, size: dict) -> None:
    """A random Marian as transformers saves it, into a new folder."""
    for name in ("source.spm", "target.spm"):
        shutil.copy(tokenizer / name, folder)
    # the tokeniser, and symbols to fill the vocabulary
    options = {
        "source_lang": "en",
        "target_lang": "de",
        "tokenizer_class": "MarianTokenizer",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(options), encoding="utf-8")
    numbers = json.loads((tokenizer / "vocab.json").read_text(encoding="utf-8"))
    numbers.pop("<pad>")
    names = sorted(numbers, key=numbers.__getitem__)
    names += [f"w{number}" for number in range(len(names), SYMBOLS - 1)] + ["<pad>"]
    (folder / "vocab.json").write_text(
        json.dumps({name: number for number, name in enumerate(names)}),
        encoding="utf-8",
    )
    # the model
    sides = {
        "layers": size["layers"],
        "ffn_dim": [size["ffn"]] * 2,
        "attention_heads": [size["heads"]] * 2,
    }
    config = transformers.MarianConfig(
        **{
            f"{side}_{name}": values[place]
            for name, values in sides.items()
            for place, side in enumerate(SIDES)
        },
        d_model=size["d_model"],
        vocab_size=SYMBOLS,
        decoder_vocab_size=SYMBOLS,
        activation_function="swish",
        scale_embedding=True,
        static_position_embeddings=True,
        max_position_embeddings=512,
        pad_token_id=SYMBOLS - 1,
        decoder_start_token_id=SYMBOLS - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        init_std=0.05,
    )
    torch.manual_seed(1)
    transformers.MarianMTModel(config).save_pretrained(folder)


class Transformers:
    """`generate` of transformers: a runner of the benchmark."""

    def __init__(self, model, batches, mode, length, fairseqs, theirs) -> None:
        """`fairseqs`, `theirs`: {symbol: number} of the two programs."""
        self._model = model
        self._eos = fairseqs["</s>"]
        self.mode = mode
        self.batches = [batch["id"].tolist() for batch in batches]
        symbols = {number: symbol for symbol, number in fairseqs.items()}
        self._number = {
            theirs[symbol]: number
            for number, symbol in symbols.items()
            if symbol in theirs
        }
        pad = theirs["<pad>"]
        self._inputs = []
        for batch in batches:
            rows = [
                [theirs[symbols[i]] for i in row if symbols[i] != "<pad>"]
                for row in batch["net_input"]["src_tokens"].tolist()
            ]
            longest = max(map(len, rows))
            ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
            self._inputs.append(
                {"input_ids": ids, "attention_mask": (ids != pad).long()}
            )
        self._options = {
            "num_beams": mode.beam,
            "do_sample": False,
            "max_new_tokens": length + 1,
            "min_new_tokens": length,
            "forced_eos_token_id": theirs["</s>"],
        }

    def decode(self, number):
        with torch.inference_mode():
            return self._model.generate(**self._inputs[number], **self._options)

    def outputs(self, number, decoded):
        eos = self._eos
        outputs = {}
        for sentence, row in zip(self.batches[number], decoded.tolist(), strict=True):
            tokens = [self._number.get(token, -1) for token in row[1:]]
            outputs[sentence] = Output(
                tokens[: tokens.index(eos) + 1] if eos in tokens else [*tokens, eos]
            )
        return outputs

    def wait(self) -> None:
        """A CPU needs no waiting."""


def prepared(folder: Path, write, tokenizer: Path, size: dict) -> Path:
    """The folder with a model as `write` writes it and as it is imported; what is there stays."""
    if not (folder / "model.safetensors").is_file():
        folder.mkdir(parents=True)
        write(folder, tokenizer, size)
    imported = folder.with_name(f"{folder.name}-imported")
    if not imported.is_dir():
        import_checkpoint(folder, imported)
    return imported


def convert(downloaded: Path, converted: Path) -> None:
    """The model as CTranslate2 reads it; its T5 would read sources without EOS."""
    if converted.is_dir():
        return
    TransformersConverter(str(downloaded)).convert(str(converted))
    path = converted / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | {"add_source_eos": True}), encoding="utf-8")


def usable(modes, make, size: int) -> list:
    """The runners that `make` makes of modes; of one that is refused a line says why."""
    runners = []
    for mode in modes:
        try:
            runner = make(mode)
            runner.decode(0)
        except AggdecError as refusal:
            print(f"{size} {mode.name:22} refused: {refusal}", file=sys.stderr)
        else:
            runners.append(runner)
    return runners


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODES, default=OPUS_MT)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument(
        "--folder", type=Path, required=True, help="for the models; kept"
    )
    parser.add_argument("--json", type=Path, required=True, help="the record")
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--length", type=int, default=25, help="tokens of sources and outputs"
    )
    parser.add_argument(
        "--accepted",
        type=float,
        default=3.0,
        help="mean tokens that an iteration of `speculative` commits",
    )
    parser.add_argument(
        "--edit-ratio", type=float, default=0.1, help="edits a token for `iad`"
    )
    parser.add_argument("--precision", help="of modes; default: all, which need memory")
    args = parser.parse_args()
    register()
    transformers.logging.set_verbosity_error()
    # the models, as each program reads them
    downloaded = args.folder / "base"
    small = None
    if args.model == OPUS_MT:
        base = prepared(downloaded, write_marian, args.tokenizer, BASE)
        small = prepared(args.folder / "small", write_marian, args.tokenizer, SMALL)
    else:
        base = prepared(downloaded, write_t5, args.tokenizer, T5[args.model])
    converted = args.folder / "ctranslate2"
    convert(downloaded, converted)
    tokens = read_tokenizer(downloaded).tokens
    theirs = {symbol(token, number): number for number, token in enumerate(tokens)}
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        downloaded, dtype=torch.float32
    )
    # what is decoded, and how
    search = {"min_len": args.length, "max_len_a": 0, "max_len_b": args.length}
    subject = Subject(
        path=str(base / "model.pt"), data=str(base), search=search, block_size=7 if small else 0,
        sentences=random_sentences(args.sentences, args.length, len(tokens) - 10),
        oracle=OracleSettings(args.edit_ratio, args.accepted), drafter_path=str(small / "model.pt") if small else None,
        name=f"size of {args.model}, random weights, simulated drafts",
    )  # fmt: skip
    modes = parse_modes(MODES[args.model], "ctranslate2")
    modes += [
        ModeSpec("transformers:greedy", "beam", 1, "transformers"),
        ModeSpec("transformers:beam5", "beam", 5, "transformers"),
    ]
    widest = 5 if small else 1
    modes = [
        mode
        for mode in modes
        if mode.beam <= widest and args.precision in (None, mode.precision)
    ]
    measured = []
    # each batch size: all programs in turns
    with Runs(subject) as runs:

        @cache
        def translator(precision):
            threads = torch.get_num_threads()
            started = TranslatorProcess(converted, precision, "cpu", threads)
            runs.callback(started.close)
            return started

        dictionaries = runs.task.source_dictionary, runs.task.target_dictionary
        for size in (1, 8):
            batches = runs.batches(runs.task, size)

            def runner(mode, size=size, batches=batches):
                if mode.peer is None:
                    return runs.runner(mode, size)
                if mode.peer == "transformers":
                    fairseqs = dictionaries[0].indices
                    return Transformers(
                        model, batches, mode, args.length, fairseqs, theirs
                    )
                return CTranslate2Runner(
                    translator(mode.precision), dictionaries, batches, mode, search
                )

            results = compare(usable(modes, runner, size), args.repeats)
            greedy = next((result for result in results if result.mode.is_greedy), None)
            for result in results:
                run = run_of(result, greedy)
                run.batch_size = size
                measured.append(run)
                print(
                    f"{size} {run.mode:22} {run.milliseconds:8.1f} ms a sentence, "
                    f"{identical_to_greedy(run)} as greedy",
                    file=sys.stderr,
                )
    script = "configs/shared/measuring/hub_speed.py"
    Record(
        title=subject.title, command=" ".join(["python", script, *sys.argv[1:]]),
        sentences=len(subject.sentences), source_tokens=sum(map(len, subject.sentences)), runs=measured, search=search,
    ).save(args.json)  # fmt: skip


if __name__ == "__main__":
    main()
