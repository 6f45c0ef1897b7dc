"""What the shipped models are said to be, against the files that are shipped."""

import pytest

from fairseq_aggdec.benchmarking.modes import parse_modes
from fairseq_aggdec.demo.tasks import TASKS


@pytest.mark.parametrize("name", list(TASKS))
def test_its_files_are_there(name: str) -> None:
    task = TASKS[name]
    assert task.name == name
    missing = [file for file in task.files if not (task.folder / file).is_file()]
    assert not missing
    # fairseq's own loader looks for dictionaries by the languages, too
    for language in (task.source_language, task.target_language):
        assert (task.folder / f"dict.{language}.txt").is_file()


@pytest.mark.parametrize("name", list(TASKS))
def test_its_modes_can_be_run(name: str) -> None:
    task = TASKS[name]
    modes = {mode.name: mode for mode in parse_modes(",".join(task.modes))}
    assert list(modes) == list(task.modes)
    assert task.shown in modes
    assert {"beam5", "greedy"} <= modes.keys()
    assert any(name.startswith("gad") for name in modes) == (task.drafter is not None)
