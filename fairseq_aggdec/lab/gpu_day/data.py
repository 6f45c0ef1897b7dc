"""Makes a data-bin of sentences for a shipped model."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fairseq_aggdec.data import subwords
from fairseq_aggdec.data.text_files import read_lines, write_lines
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import folder_written_whole
from fairseq_aggdec.text.shipped import SHIPPED

_HELD_OUT = 0.05  # share of the pairs in `valid`, and likewise in `test`


def write_data(folder: Path, data: Path, task: str, pairs: int) -> None:
    """Binarise Tatoeba sentence pairs of all lengths with the subwords of a shipped model.

    Args:
        folder: the data-bin; nothing is done if it exists.
        data: folder of the data sets.
        task: a key of `SHIPPED`, which names the model; for grammatical error correction, source and target are the
            same English sentence.
        pairs: about how many pairs to take.

    Raises:
        AggdecError: fairseq-preprocess failed, or the data set is not there.
    """
    if folder.exists():
        return
    demo, file = SHIPPED[task], data / "tatoeba-en-de/deu.txt.gz"
    lines = list(read_lines(file))
    rows = [line.split("\t") for line in lines[:: max(1, len(lines) // pairs)]]  # the file is sorted by length
    held_out = int(_HELD_OUT * len(rows))
    source, target = demo.source_language, demo.target_language
    names = ("src", "tgt") if source == target else (source, target)  # fairseq-preprocess needs two different names
    sides = {names[0]: (0, source), names[1]: (int(task == "mt"), target)}
    with TemporaryDirectory(prefix="aggdec-data-") as place:
        text = Path(place)
        for suffix, (column, language) in sides.items():
            workers = min(os.cpu_count() or 1, 1 + len(rows) // 1000)  # a worker takes seconds to start
            texts = (row[column] for row in rows)
            make = subwords.as_written if demo.tokenizer == "as_written" else subwords.moses
            tokens = list(subwords.encode_lines(texts, make, language, workers=workers))
            encoded = list(
                subwords.encode_lines(tokens, subwords.subword_nmt, demo.folder / "bpecodes", workers=workers)
            )
            # every n-th line, so that each split has all lengths
            step = len(encoded) // max(1, held_out)
            write_lines(text / f"test.{suffix}", encoded[::step])
            write_lines(text / f"valid.{suffix}", encoded[1::step])
            write_lines(text / f"train.{suffix}", [line for n, line in enumerate(encoded) if n % step > 1])
        command = [sys.executable, "-m", "fairseq_cli.preprocess", "-s", names[0], "-t", names[1]]
        for option, language in (("--srcdict", source), ("--tgtdict", target)):
            command += [option, str(demo.folder / f"dict.{language}.txt")]
        for split in ("train", "valid", "test"):
            command += [f"--{split}pref", str(text / split)]
        with folder_written_whole(folder) as partial:
            done = subprocess.run(
                [*command, "--destdir", str(partial), "--workers", "1"], capture_output=True, text=True
            )
            if done.returncode != 0:
                raise AggdecError(f"fairseq-preprocess failed: {done.stderr.strip().splitlines()[-1]}")
