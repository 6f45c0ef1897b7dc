"""Time a model of OPUS-MT's exact size in transformers, CTranslate2 and this plugin, in turns, on the same sentences.

Weights are random, outputs have a fixed number of tokens, and the drafts of `speculative` are simulated: they cost what
the small model costs, and as many are accepted as --accepted says. It needs transformers and ctranslate2:

    pip install transformers ctranslate2
    python configs/shared/measuring/hub_speed.py --tokenizer tests/hub/models/marian --folder work/opus
        --json work/opus/speed.json

`--tokenizer`: a folder with source.spm, target.spm and vocab.json; tokens without a piece fill the vocabulary.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from ctranslate2.converters import TransformersConverter

from fairseq_aggdec import register
from fairseq_aggdec.hub.importing import import_checkpoint
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


def write_model(folder: Path, tokenizer: Path, size: dict) -> Path:
    """A random Marian as transformers saves it; one that is there stays."""
    if (folder / "model.safetensors").is_file():
        return folder
    folder.mkdir(parents=True)
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
    return folder


class Transformers:
    """`generate` of transformers: a runner of the benchmark."""

    def __init__(self, model, batches, mode, length, fairseqs, theirs) -> None:
        """`fairseqs`, `theirs`: {symbol: number} of the two programs."""
        self._model = model
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
        }

    def decode(self, number):
        with torch.inference_mode():
            return self._model.generate(**self._inputs[number], **self._options)

    def outputs(self, number, decoded):
        eos = self._number[0]
        outputs = {}
        for sentence, row in zip(self.batches[number], decoded.tolist(), strict=True):
            tokens = [self._number.get(token, -1) for token in row[1:]]
            outputs[sentence] = Output(
                tokens[: tokens.index(eos) + 1] if eos in tokens else [*tokens, eos]
            )
        return outputs

    def wait(self) -> None:
        """A CPU needs no waiting."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
    args = parser.parse_args()
    register()
    transformers.logging.set_verbosity_error()
    # the models, as each program reads them
    folders = {}
    for name, size in (("base", BASE), ("small", SMALL)):
        downloaded = write_model(args.folder / name, args.tokenizer, size)
        folders[name] = args.folder / f"{name}-imported"
        if not folders[name].is_dir():
            import_checkpoint(downloaded, folders[name])
    converted = args.folder / "ctranslate2"
    if not converted.is_dir():
        TransformersConverter(str(args.folder / "base")).convert(str(converted))
    theirs = json.loads((args.folder / "base/vocab.json").read_text(encoding="utf-8"))
    model = transformers.MarianMTModel.from_pretrained(
        args.folder / "base", dtype=torch.float32
    ).eval()
    # what is decoded, and how
    search = {"min_len": args.length, "max_len_a": 0, "max_len_b": args.length}
    subject = Subject(
        path=str(folders["base"] / "model.pt"), data=str(folders["base"]),
        sentences=random_sentences(args.sentences, args.length, SYMBOLS - 10), search=search, block_size=7,
        oracle=OracleSettings(0.1, args.accepted), drafter_path=str(folders["small"] / "model.pt"),
        name="OPUS-MT's size, random weights, simulated drafts",
    )  # fmt: skip
    modes = parse_modes(
        "beam1,beam5,greedy,greedy@int8,speculative,aggressive-beam:5:0", "ctranslate2"
    )
    rivals = [
        ModeSpec("transformers:greedy", "beam", 1, "transformers"),
        ModeSpec("transformers:beam5", "beam", 5, "transformers"),
    ]
    measured = []
    translators = {
        precision: TranslatorProcess(
            converted, precision, "cpu", torch.get_num_threads()
        )
        for precision in ("fp32", "int8")
    }
    # each batch size: all programs in turns
    with Runs(subject) as runs:
        for translator in translators.values():
            runs.callback(translator.close)
        for size in (1, 8):
            batches = runs.batches(runs.task, size)
            dictionaries = runs.task.source_dictionary, runs.task.target_dictionary
            runners = [runs.runner(mode, size) for mode in modes if mode.peer is None]
            runners += [
                CTranslate2Runner(
                    translators[mode.precision],
                    dictionaries,
                    batches,
                    mode,
                    search,
                )
                for mode in modes
                if mode.peer
            ]
            runners += [
                Transformers(
                    model, batches, mode, args.length, dictionaries[0].indices, theirs
                )
                for mode in rivals
            ]
            results = compare(runners, args.repeats)
            greedy = next(result for result in results if result.mode.is_greedy)
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
