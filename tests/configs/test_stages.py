"""Every stage of every experiment of full size: the commands that it gives are ones that the programs take."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.benchmarking.modes import parse_modes
from fairseq_aggdec.cli import bench, distill
from fairseq_aggdec.cli.experiments import read_experiment
from fairseq_aggdec.reporting.counterparts import read_tables
from tests.configs.composing import CONFIGS, ROOT, compose, experiments
from tests.configs.recording import recorded

ABOUT = [read_experiment(CONFIGS / name) for name in experiments()]
FULL_SIZE = [item.name for item in ABOUT if item.full_size]
TIMED = {"seconds", "speed-up", "accepted block", "timed BLEU", "module ms", "module %", "device MiB"}
"""measures of aggdec-bench alone"""


def stages_of(experiment: str) -> list[str]:
    """What an unknown stage's error lists."""
    command = ["bash", str(ROOT / "scripts/reproduce.sh"), experiment, "no-such-stage"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    return done.stderr.strip().rpartition(" has: ")[2].split()


@pytest.fixture(scope="module", params=FULL_SIZE)
def commands(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """(experiment, the commands of all its stages)."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "clean.txt").write_text("a clean sentence .\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEAN_ENGLISH", str(folder / "clean.txt"))
        (folder / "work" / request.param / "synthetic").mkdir(parents=True)
        stages = [stage for stage in stages_of(request.param) if stage != "synthetic"]
        yield request.param, recorded(request.param, *stages, folder=folder)


def test_trainings_compose(commands: tuple[str, list[list[str]]]) -> None:
    experiment, given = commands
    trainings = [command for command in given if command[0] == "fairseq-hydra-train"]
    assert trainings
    folders = [[word for word in command if word.startswith("checkpoint.save_dir=")][-1] for command in trainings]
    assert len(set(folders)) == len(folders), "two models in one folder"
    languages = set()
    for command in trainings:
        name = command[command.index("--config-name") + 1]
        folder = Path(command[command.index("--config-dir") + 1]).name
        overrides = [word for word in command[1:] if "=" in word and not word.startswith("hydra.")]
        config = compose(folder, name, tuple(overrides))
        languages.add((config.task.get("source_lang"), config.task.get("target_lang")))
        batch = config.optimization.update_freq[0] * config.distributed_training.distributed_world_size
        of_paper = compose(folder, name)
        of_paper_batch = of_paper.optimization.update_freq[0] * of_paper.distributed_training.distributed_world_size
        assert batch == of_paper_batch
    assert len(languages) == 1, experiment


def test_what_is_read_was_made(commands: tuple[str, list[list[str]]]) -> None:
    """Models that are decoded with, learned from or averaged have been trained before."""
    _, given = commands
    made: set[Path] = set()
    for command in given:
        text = " ".join(command)
        needed = [Path(part) for word in command for part in re.split("[:=]", word) if part.endswith("/model.pt")]
        for path in needed:
            assert path in made or "/bart/" in str(path) or path.parent.name == "teacher", text
        made |= {Path(word.partition("=")[2]).parent / "model.pt" for word in command if "checkpoint.save_dir=" in word}


def test_decoding_and_measuring(commands: tuple[str, list[list[str]]]) -> None:
    _, given = commands
    generated = [command for command in given if command[0] == "fairseq-generate"]
    outputs = [command[command.index("--results-path") + 1] for command in generated]
    assert len(set(outputs)) == len(outputs), "two decodings in one folder"
    for command in given:
        if "fairseq_aggdec.cli.bench" in command:
            args = bench._parser().parse_args(command[3:])
            assert parse_modes(args.modes, args.peers, args.nat_peer)
        elif "fairseq_aggdec.cli.distill" in command:
            distill._parser().parse_args(command[3:])


def test_tables_are_of_what_is_decoded_and_measured(commands: tuple[str, list[list[str]]]) -> None:
    """Every number of tables.yaml has a decoding or a measurement that it can come from."""
    experiment, given = commands
    outputs = {Path(c[c.index("--results-path") + 1]) for c in given if c[0] == "fairseq-generate"}
    decoded = {(path.parent.name, path.name) for path in outputs}
    assert all(path.parts[-4:-2] == (experiment, "decode") for path in outputs)
    files = {Path(c[c.index("--json") + 1]) for c in given if "fairseq_aggdec.cli.bench" in c}
    measured = {path.with_suffix("").as_posix().rpartition(f"/{experiment}/")[2] for path in files}
    images = {Path(c[c.index("--output") + 1]) for c in given if "fairseq_aggdec.cli.super_resolve" in c}
    measured |= {f"{folder.parent.name}/{folder.name}/record" for folder in images}
    for counterparts in read_tables(CONFIGS / experiment).counterparts.values():
        for place, source in counterparts.sources.items():
            decoding_needed = source.measure.removesuffix(" of all") not in TIMED and source.record != "bench/baselines"
            known = (source.set, source.label) in decoded if decoding_needed else source.record in measured
            assert known, f"{counterparts.table.name}, {place}: {source}"


def test_gpus_change_the_update_frequency(tmp_path: Path) -> None:
    (training, *_) = [c for c in recorded("wmt14_en_de", "teacher", folder=tmp_path, gpus=2) if "hydra" in c[0]]
    assert "distributed_training.distributed_world_size=2" in training
    assert "optimization.update_freq=[16]" in training


def test_shorter_trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPDATES", "80")
    monkeypatch.setenv("DEPTHS", "6-6")
    (training, *_) = [c for c in recorded("gec_small", "depth", folder=tmp_path, check=False) if "hydra" in c[0]]
    config = compose("gec_small", "depth", tuple(word for word in training[1:] if "=" in word and "hydra." not in word))
    assert config.optimization.max_update == config.lr_scheduler.total_num_update == 80
    assert config.lr_scheduler.warmup_updates == 20


def test_without_a_gpu_the_stand_in_is_named(tmp_path: Path) -> None:
    assert not recorded("wmt14_en_de", "teacher", folder=tmp_path, gpus=0, check=False)


def test_settings_of_decoding(tmp_path: Path) -> None:
    """β and τ of papers/000 Tables 8 and 14."""
    expected = {
        "wmt14_en_de": ["3 1.0", "5 3.0"],
        "wmt14_de_en": ["3 1.0", "5 3.0"],
        "wmt16_en_ro": ["5 4.0", "5 6.0"],
        "wmt16_ro_en": ["3 2.0", "5 3.0"],
    }
    for experiment, settings in expected.items():
        (tmp_path / experiment).mkdir()
        given = recorded(experiment, "decode", folder=tmp_path / experiment)
        loose = [command for command in given if "gad++" in command]
        found = [f"{c[c.index('--top-beta') + 1]} {c[c.index('--tolerance') + 1]}" for c in loose]
        assert found == settings


def test_small_stand_ins_exist() -> None:
    for item in ABOUT:
        for line in item.small:
            stand_in, *stages = line.split()
            assert (CONFIGS / stand_in).is_dir(), f"{item.name}: {stand_in}"
            assert set(stages) <= set(stages_of(stand_in))
