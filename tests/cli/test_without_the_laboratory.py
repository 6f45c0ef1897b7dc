"""What `pip install .` alone installs is enough for the plugin; a verb of the laboratory names its extra."""

import subprocess
import sys
from pathlib import Path

from tests.bulk.decoding import TRANSLATE
from tests.support.helpers import PLUGIN, ToyModel

PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cattrs", "matplotlib", "nltk", "PIL", "pooch", "requests", "rouge_score"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = sys.argv[1:]
if sys.argv[0] == "fairseq-generate":
    from fairseq_cli.generate import cli_main
    sys.exit(cli_main())
from fairseq_aggdec.cli.verbs import main
sys.exit(main())
"""


def run(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """A command in a process that can import no library of the extra `lab`."""
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr[-3000:]
    return done


def test_text_is_corrected_and_translated_and_a_data_set_decoded_and_verified(
    toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    assert (
        run("aggdec", "correct", "She have two brother.").stdout
        == "She has two brothers.\n"
    )
    assert run("aggdec", "translate", "Where do you live?").stdout == "Wo wohnt ihr?\n"
    (tmp_path / "text").write_text("Where do you live?\n")
    for _ in range(2):  # the second time it reads what the first wrote
        files = f"--input {tmp_path}/text --output {tmp_path}/out --cpu"
        run("aggdec", "decode", *TRANSLATE, *files.split())
    assert next((tmp_path / "out").glob("text.*.txt")).read_text() == "Wo wohnt ihr?\n"
    model = f"{toy_model_dir.data} --path {toy_model_dir.checkpoint}"
    verify = f"aggdec verify {model} --limit 2 --modes greedy,iad --json {tmp_path}/verified.json"
    assert "passed" in run(*verify.split()).stdout
    task = f"--user-dir {PLUGIN} --task aggressive_translation --decoding iad"
    generate = f"fairseq-generate {model} {task} --cpu --max-len-b 5"
    assert "H-0" in run(*generate.split()).stdout


def test_a_verb_that_draws_or_measures_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{}")
    error = run("aggdec", "report", tmp_path / "record.json", status=1).stderr
    assert (
        error
        == "error: aggdec report needs cattrs: pip install 'fairseq-aggdec[lab]'\n"
    )
