"""scripts/fairseq_suite.sh on a small folder in the layout of fairseq's checkout."""

from pathlib import Path

from tests.scripts.checkout import run_whatever_comes
from tests.support.helpers import ToyModel

GENERATORS = """
import unittest
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.search import Sampling
from fairseq.sequence_generator import SequenceGenerator
import torch

class TestSamplingSearch(unittest.TestCase):
    def decode(self, copies=1, **options):
        (model,), _, task = load_model_ensemble_and_task(["CHECKPOINT"], {"data": "DATA"})
        if options:
            options["search_strategy"] = Sampling(task.target_dictionary)
        generator = SequenceGenerator([model] * copies, task.target_dictionary, beam_size=2, **options)
        source = torch.tensor([[5, 6, task.target_dictionary.eos()]])
        return generator.forward({"net_input": {"src_tokens": source, "src_lengths": torch.tensor([3])}})[0]

    def test_two_hypotheses(self):
        self.assertEqual(len(self.decode()), 2)

    def test_three_hypotheses(self):
        self.assertEqual(len(self.decode()), 3)

    def test_sampling(self):
        self.decode(search_strategy=None)

    def test_one_model_twice(self):
        self.decode(copies=2)

    def test_what_is_left_when_sampling_is_refused(self):
        try:
            self.decode(search_strategy=None)
        except RuntimeError:
            self.assertEqual(4, 5)
"""
COMMANDS = """
import unittest
from fairseq import options
from fairseq_cli import generate

def generate_main(data_dir, extra_flags=None, path=None):
    flags = ["--print-alignment"] if extra_flags is None else extra_flags
    if "iad" in flags and "--lenpen" in flags:
        flags = [*flags, "--min-len", "12"]  # an output that is not fairseq's
    size = ["--beam", "3", "--max-len-b", "12", "--gen-subset", "valid", "--num-workers", "0", "--cpu"]
    parser = options.get_generation_parser()
    generate.main(options.parse_args_and_arch(parser, [data_dir, "--path", "CHECKPOINT", *size, *flags]))

class TestTranslation(unittest.TestCase):
    def test_alignment(self):
        generate_main("DATA")

    def test_sampling(self):
        generate_main("DATA", ["--sampling", "--nbest", "3"])

    def test_penalty(self):
        generate_main("DATA", ["--max-len-a", "0", "--lenpen", "2"])
"""


def test_what_passes_is_refused_or_fails_is_told_apart(
    toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    for name, text in {
        "__init__": "",
        "test_sequence_generator": GENERATORS,
        "test_binaries": COMMANDS,
    }.items():
        text = text.replace("DATA", str(toy_model_dir.data)).replace(
            "CHECKPOINT", str(toy_model_dir.checkpoint)
        )
        (tests / f"{name}.py").write_text(text)
    done = run_whatever_comes(
        "fairseq_suite", str(tmp_path), data=tmp_path, work=tmp_path
    )
    assert done.returncode == 1
    for line in (
        "tests/test_sequence_generator.py, our generators: 1 passed, 1 refused by name, 3 failed\n",
        "  refused, 1 times: search_strategy Sampling: the plugin's modes have BeamSearch, only\n",
        "  FAILED tests.test_sequence_generator.TestSamplingSearch.test_three_hypotheses: AssertionError: 2 != 3\n",
        "test_one_model_twice: refused unexpectedly: an ensemble has the same decoder twice: give it once, or a copy",
        "test_what_is_left_when_sampling_is_refused: AssertionError: 4 != 5\n",
        "tests/test_binaries.py, as it is: 3 passed, 0 refused by name, 0 failed\n",
        "tests/test_binaries.py, --decoding greedy: 2 passed, 2 refused by name, 0 failed; 30 outputs compared",
        "tests/test_binaries.py, --decoding iad: 1 passed, 2 refused by name, 1 failed; 30 outputs compared",
        "  FAILED tests.test_binaries.TestTranslation.test_penalty --max-len-a 0 --lenpen 2 --beam 1: ",
        "tests/test_binaries.py, --decoding aggressive-beam: 2 passed, 2 refused by name, 0 failed",
    ):
        assert line in done.stdout


def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path) -> None:
    done = run_whatever_comes(
        "fairseq_suite", str(tmp_path), data=tmp_path, work=tmp_path
    )
    assert done.returncode == 1
    assert (
        f"{tmp_path}/tests/test_sequence_generator.py is missing: FOLDER must be a checkout"
        in done.stderr
    )
