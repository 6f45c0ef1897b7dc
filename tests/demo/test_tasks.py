"""What the shipped models are said to be, against the files that are shipped."""

import pytest

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.demo.tasks import TASKS
from fairseq_aggdec.lab.benchmarking.modes import parse_modes


@pytest.mark.parametrize("name", list(TASKS))
def test_it_has_one_dictionary_a_language_and_its_checkpoint_names_the_languages(name: str) -> None:
    """fairseq looks for the dictionaries of the languages that it is given, or else that the checkpoint names."""
    task = TASKS[name]
    assert task.name == name
    languages = {task.source_language, task.target_language}
    assert {file.name for file in task.folder.glob("dict.*")} == {f"dict.{language}.txt" for language in languages}
    recorded = read_checkpoint(task.folder / "model.pt")["cfg"]["task"]
    assert (recorded["source_lang"], recorded["target_lang"]) == (task.source_language, task.target_language)


@pytest.mark.parametrize("name", list(TASKS))
def test_its_modes_can_be_run(name: str) -> None:
    task = TASKS[name]
    modes = {mode.name: mode for mode in parse_modes(",".join(task.modes))}
    assert list(modes) == list(task.modes)
    assert task.shown in modes
    assert {"beam5", "greedy"} <= modes.keys()
    assert any(name.startswith("gad") for name in modes) == (task.drafter is not None)
