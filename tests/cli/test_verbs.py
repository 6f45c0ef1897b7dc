"""`aggdec VERB`: the list of verbs."""

import subprocess
import sys
from pathlib import Path

import fairseq_aggdec
from fairseq_aggdec.cli.verbs import GROUPS, VERBS, parse


def test_the_verbs_and_the_package_are_named_from_any_folder_without_torch_or_fairseq(
    tmp_path: Path,
) -> None:
    program = (
        "import sys; from fairseq_aggdec.cli.verbs import main; [main([word]) for word in ('--help', '--version', "
        "'user-dir')]; print({'torch', 'fairseq', 'numpy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path
    )
    *printed, version, folder, imported = done.stdout.splitlines()
    assert imported == "set()"
    assert version == f"aggdec {fairseq_aggdec.__version__}"
    assert Path(folder).samefile(Path(fairseq_aggdec.__file__).parent)
    assert Path(folder).is_absolute()
    assert [line[:-1] for line in printed if line.endswith(":")] == list(GROUPS)
    assert [
        line[2:].partition("  ")[0] for line in printed if line.startswith("  ")
    ] == list(VERBS)


def test_an_option_of_0_is_given() -> None:
    verb = parse(["correct", "--mode", "iad++", "--tolerance", "0", "a text"])
    assert verb.given(type(verb)).items() >= {"mode": "iad++", "tolerance": 0}.items()
