"""Checkpoints and data of models that others trained, a folder of the work folder for each.

The texts are random words of Arabic letters; russian.txt, sentences written for this experiment; and molecules.txt,
well-known medicines. The target side has the outputs of the models' own decoders, which fairseq's search has to find.
"""

import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from experiments.experiment import Experiment
from experiments.steps import Steps
from experiments.text_files import given_file, read_lines
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.errors import AggdecError

from . import models

EXPERIMENT = Experiment(sides=("src", "tgt"))
PACKAGES = ("ruaccent-predictor==1.2.0", "annalog==1.0.6")
HERE = Path(__file__).parent
TRANSLITERATOR = "outside/aren-transliteration"
"""the folder of CTranslate2's model, below that of the data sets"""

Tokens = list[int]


def prepare(steps: Steps) -> None:
    steps.once("transliterator", transliterator)
    steps.once("packages", install)
    steps.once("stress_marker", stress_marker)
    steps.once("molecule_editor", molecule_editor)


def install(steps: Steps, folder: Path) -> None:
    """Install the packages, without what they need for more than their networks."""
    command = ["-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    if (
        subprocess.run([sys.executable, *command, str(folder), *PACKAGES]).returncode
        != 0
    ):
        byhand = f"pip install --no-deps --target {steps.work / 'packages'} {' '.join(PACKAGES)}"
        raise AggdecError(
            f"the models' packages could not be installed: with a network, {byhand}, and again"
        )


def transliterator(steps: Steps, folder: Path) -> None:
    try:
        from ctranslate2 import Translator
    except ModuleNotFoundError:
        raise AggdecError(
            "the transliterator's own decoder is CTranslate2: pip install ctranslate2"
        ) from None
    theirs = given_file(steps.data / TRANSLITERATOR / "model.bin").parent
    model = models.transliterator(theirs)
    # always the same words, of the commonest letters
    draw = random.Random(1)
    words = [draw.choices(range(4, 38), k=draw.randint(2, 14)) for _ in range(100)]
    texts = [[model.source[letter] for letter in word] for word in words]
    translations = Translator(str(theirs), intra_threads=1).translate_batch(
        texts, beam_size=1, max_decoding_length=60
    )
    names = [
        [model.target.index(letter) for letter in one.hypotheses[0]]
        for one in translations
    ]
    write(folder, model, words, names, longest=59)


def stress_marker(steps: Steps, folder: Path) -> None:
    sys.path.insert(0, str(steps.work / "packages"))
    from ruaccent.accentor import Accentor

    theirs = Accentor(device="cpu")
    model = models.stress_marker(theirs.model.state_dict(), list(theirs.vocab))
    ours = {0: model.source.index(models.PADDING), 1: 0}  # their padding and start
    sources = []
    outputs = []
    for line in read_lines(HERE / "russian.txt"):
        sources.append(
            [
                ours.get(number, number)
                for number in theirs._text_to_tensor(line)[0].tolist()
            ]
        )
        (marked,) = theirs._predict_batch([line])
        outputs.append([theirs.vocab[letter] for letter in marked])
    write(folder, model, sources, outputs, longest=254)


class PlainUnpickler(pickle.Unpickler):
    """Reads lists, dictionaries, numbers and texts, and runs nothing."""

    def find_class(self, module: str, name: str) -> None:
        raise pickle.UnpicklingError(f"{module}.{name}: only plain data are expected")


def molecule_editor(steps: Steps, folder: Path) -> None:
    package = steps.work / "packages/annalog"
    sys.path.insert(0, str(package))  # what the package itself imports is not installed
    from model_files.seq2seq_attention import Decoder, Encoder, Seq2Seq
    from model_files.vocabulary import SMILESTokenizer

    with (package / "ckpt_and_vocab/stereo_experiment_vocab_ttf.pkl").open(
        "rb"
    ) as file:
        symbols = PlainUnpickler(file).load()["itos"]
    # their model
    weights = torch.load(
        package / "ckpt_and_vocab/Lev_extended.pt",
        map_location="cpu",
        weights_only=True,
    )
    cpu = torch.device("cpu")
    sides = (
        side(len(symbols), 256, 3, 8, 512, 0.1, cpu, 102) for side in (Encoder, Decoder)
    )
    theirs = Seq2Seq(*sides, 1, 1, cpu)
    theirs.load_state_dict(weights)
    theirs.eval()
    # what it writes
    tokenise = SMILESTokenizer().tokenize
    molecules = [
        [symbols.index(atom) for atom in tokenise(line)]
        for line in read_lines(HERE / "molecules.txt")
    ]
    sources = [[0, *molecule, models.EOS] for molecule in molecules]
    outputs = [edited(theirs, molecule) for molecule in molecules]
    write(
        folder, models.molecule_editor(weights, symbols), sources, outputs, longest=99
    )


@torch.no_grad()
def edited(
    theirs: torch.nn.Module, molecule: Tokens, start: int = 2, end: int = 3
) -> Tokens:
    """annalog's output, symbol by symbol, without padding and start symbols among it."""
    source = torch.tensor([[start, *molecule, end]])
    mask = theirs.make_src_mask(source)
    encoded = theirs.encoder(source, mask)
    text = [start]
    while text[-1] != end and len(text) < 100:
        target = torch.tensor([text])
        scores = theirs.decoder(target, encoded, theirs.make_trg_mask(target), mask)[0][
            0, -1
        ]
        scores[[1, start]] = -torch.inf
        text.append(int(scores.argmax()))
    return [symbol for symbol in text[1:] if symbol != end]


def write(
    folder: Path,
    model: models.Outside,
    sources: list[Tokens],
    outputs: list[Tokens],
    longest: int,
) -> None:
    """Write the checkpoint and the data to a folder.

    Raises:
        AggdecError: fairseq's search does not find the outputs of the model's own decoder.
    """
    targets = [[*output, models.EOS] for output in outputs]
    greedy = SequenceGenerator(
        [model.model], model.target, beam_size=1, max_len_a=0, max_len_b=longest
    )
    decoded = [
        best["tokens"].tolist()
        for best, *_ in models.searched(greedy, model.model, sources)
    ]
    if decoded != targets:
        raise AggdecError(
            f"{folder.stem}: fairseq's outputs are not its own decoder's; is it another version?"
        )
    model.save(folder / "checkpoint.pt")
    model.source.save(str(folder / "dict.src.txt"))
    model.target.save(str(folder / "dict.tgt.txt"))
    DataBin(folder, "src", "tgt").write(
        "test", map(np.array, sources), map(np.array, targets)
    )
