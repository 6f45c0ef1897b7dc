"""The stages of all experiments, by `scripts/reproduce.sh --dry-run`."""

import os
import re
import shlex
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from experiments.about import read_about
from experiments.experiment_tables import TABLES
from experiments.results import Results
from experiments.tables import paper_tables
from experiments.yaml_files import read_yaml
from fairseq import options
from omegaconf import OmegaConf

from fairseq_aggdec.cli.measure import Bench
from fairseq_aggdec.cli.verbs import parse
from fairseq_aggdec.lab.bench.modes import parse_modes
from fairseq_aggdec.lab.score.metrics import all_metrics
from tests.configs.composing import CONFIGS, ROOT, compose, experiments, written

ABOUT = {name: read_about(CONFIGS / name) for name in experiments()}
PARSERS = {
    "fairseq-generate": options.get_generation_parser,
    "fairseq-interactive": options.get_interactive_generation_parser,
}
SCORES = {column for metric in all_metrics().values() for column in metric.columns}
PROGRAMS = ("python", "fairseq-hydra-train", "subword-nmt", *PARSERS)
WRITTEN = "--results-path --json --output --destdir --figure --figures --decoding-stats --write"
"""options of what a command writes"""
PREPARED = ("data-bin", "text", "tok", "bpe", "codes")
"""what `prepare` writes into the work folder"""
GIVEN = {"work/clean.en", "work/cnndm/teacher/model.pt", "work/outside"}
"""a user's text, a link to a published model, what the `prepare` of others' models writes"""


def reproduce(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`scripts/reproduce.sh` with these words."""
    return subprocess.run(
        ["bash", str(ROOT / "scripts/reproduce.sh"), *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def commands(experiment: str, *stages: str, **environment: str) -> list[list[str]]:
    """The words of each command of stages, with `work` for the folder of the work folders."""
    done = reproduce(experiment, *stages, "--dry-run", **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    return [shlex.split(line) for line in lines if line.startswith(PROGRAMS)]


def stages_of(experiment: str) -> list[str]:
    """All stages, which the error of an unknown one lists."""
    done = reproduce(experiment, "no-such-stage", "--dry-run")
    assert done.returncode == 2
    return done.stderr.strip().rpartition(" has: ")[2].split()


@cache
def all_commands(experiment: str) -> list[list[str]]:
    """The commands of all stages, on eight GPUs where the experiment is of full size."""
    gpus = "8" if ABOUT[experiment].full_size else "0"
    return commands(experiment, *stages_of(experiment), GPUS=gpus)


def after(command: list[str], option: str) -> str:
    """The value of an option."""
    return command[command.index(option) + 1]


def check_with_its_parser(command: list[str]) -> None:
    """Parse the command as its program does."""
    program, *words = command
    if program == "fairseq-hydra-train":
        compose(*model_and_overrides(command))
    elif program in PARSERS:
        # alike commands are parsed once
        parsed(program, *("work" if word[:5] == "work/" else word for word in words))
    elif "fairseq_aggdec.cli.verbs" in words:
        verb = parse(words[2:])
        if isinstance(verb, Bench):
            parse_modes(verb.modes, verb.peers, verb.nat_peer)


@cache
def parsed(program: str, *words: str) -> Any:
    """The options of a command, which this plugin refuses where the mode does not read one of them."""
    return options.parse_args_and_arch(PARSERS[program](), list(words))


def model_and_overrides(command: list[str]) -> tuple[str, str, tuple[str, ...]]:
    """Folder in configs/, model and overrides of a training; one path for all, as compose() makes each only once."""
    overrides = [
        re.sub("=[^=]*/.*", "=path", word)
        for word in command[5:]
        if not word.startswith("hydra.")
    ]
    folder = Path(after(command, "--config-dir")).name
    return folder, after(command, "--config-name"), tuple(overrides)


def read_and_written(command: list[str]) -> tuple[set[str], set[str]]:
    """The files, folders and beginnings of names below `work` that a command reads, and those that it writes."""
    reads: set[str] = set()
    writes: set[str] = set()
    for number, (option, word) in enumerate(pairwise(command), start=1):
        paths = {part for part in re.split("[:=]", word) if part[:5] == "work/"}
        if option == "--work":  # results are scored and shown as far as they are there
            for folder in paths if "prepare" in command else ():
                writes |= {f"{folder}/{name}" for name in PREPARED}
        elif word.startswith("checkpoint.save_dir="):
            writes |= paths | {f"{Path(path).parent}/model.pt" for path in paths}
        elif (
            option in WRITTEN.split()
            or word.startswith("hydra.run.dir=")
            or (number == 5 and command[3] in ("distill", "corrupt", "shrink"))
        ):
            writes |= paths
        else:
            reads |= paths
    return reads, writes


@pytest.mark.parametrize("experiment", ABOUT)
def test_commands_are_ones_that_programs_take_and_read_what_was_written(
    experiment: str,
) -> None:
    made = {*GIVEN}
    for command in all_commands(experiment):
        check_with_its_parser(command)
        reads, writes = read_and_written(command)
        for path in reads:
            assert any(path.startswith(one) or one.startswith(path) for one in made)
        if command[0] in ("fairseq-generate", "fairseq-hydra-train"):
            assert not writes & made, "two results in one place"
        made |= writes


@pytest.mark.parametrize("experiment", ABOUT)
def test_trainings_have_one_pair_of_languages_and_the_batches_of_the_papers(
    experiment: str,
) -> None:
    languages = set()
    for command in all_commands(experiment):
        if command[0] == "fairseq-hydra-train":
            training = model_and_overrides(command)
            task = compose(*training).task
            languages.add((task.get("source_lang"), task.get("target_lang")))
            if ABOUT[experiment].full_size:
                assert batch(command) == batch_of(written(*training[:2]))
    assert len(languages) <= 1


def batch(command: list[str]) -> int:
    folder, name, _ = model_and_overrides(command)
    sizes = [word for word in command if word.startswith(("optimiz", "distributed"))]
    given = OmegaConf.from_dotlist(sizes)
    return batch_of(OmegaConf.merge(written(folder, name), given))


def batch_of(config: Any) -> int:
    """Of how many GPUs' gradients an update is made."""
    frequency = OmegaConf.select(config, "optimization.update_freq", default=[1])
    return int(frequency[0] * config.distributed_training.distributed_world_size)


class Columns(dict[str, float]):
    """The scores of an output that there is not, of which only known ones are asked for."""

    def get(self, column: str) -> None:  # type: ignore[override]
        assert column in SCORES


class Asked(Results):
    """Results of an experiment of which all that is asked for is noted, and nothing was measured."""

    def __init__(self, config: Path, work: Path) -> None:
        super().__init__(config, work, work)
        self.asked: set[tuple[str, str]] = set()
        self.timed: set[str] = set()

    def score(self, subset: str, label: str) -> Columns:
        self.asked.add((subset, label))
        return Columns()

    def run(self, name: str, mode: str) -> None:
        self.timed.add(name)


@pytest.mark.parametrize("experiment", ABOUT)
def test_tables_are_of_what_is_decoded_and_measured(
    experiment: str, tmp_path: Path
) -> None:
    decoded = set()
    measured = {"bench/bench"}  # of rows of scores alone
    for command in all_commands(experiment):
        if command[0] == "fairseq-generate":
            folder = Path(after(command, "--results-path"))
            decoded.add((folder.parent.name, folder.name))
        for path in read_and_written(command)[1]:
            name = path.removeprefix(f"work/{experiment}/")
            measured |= {name.removesuffix(".json"), f"{name}/record"}
    results = Asked(CONFIGS / experiment, tmp_path)
    declared = read_yaml(CONFIGS / experiment / "tables.yaml")
    for table in paper_tables(results, declared):
        assert {table.greedy, table.beam} <= {*table.numbers, ""}
    assert results.asked <= decoded
    assert {name for name in results.timed - measured if name[:3] != "../"} == set()
    for name in declared.get("tables", []):
        assert not any(table.grid() for table in TABLES[name](results))


@pytest.mark.parametrize(
    "experiment", [name for name in ABOUT if ABOUT[name].full_size]
)
def test_full_size_is_decoded_and_timed_on_a_gpu_in_both_precisions(
    experiment: str,
) -> None:
    about = ABOUT[experiment]
    assert about.host_gb
    assert about.memory_gb
    assert {*about.more_gpu_hours, *about.more_disk_gb} <= {*stages_of(experiment)}
    outputs: dict[bool, set[str]] = {False: set(), True: set()}
    for command in all_commands(experiment):
        assert "--cpu" not in command
        if command[0] == "fairseq-generate":
            outputs["--fp16" in command].add(after(command, "--results-path"))
    assert outputs[True] == {f"{name}-fp16" for name in outputs[False]}


CORES = str(len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    "experiment, stages, environment, words",
    [
        # fewer GPUs than the papers', a processor without bfloat16
        ("wmt14_en_de", "teacher", "GPUS=2", "optimization.update_freq=[16]"),
        ("celeba_sr", "heads", "GPUS=3", "optimization.update_freq=[3]"),
        ("celeba_sr", "heads", "GPUS=3", "checkpoint.save_interval_updates=5000"),
        ("gec_small", "train", "PRECISION=fp32", "common.bf16=false"),
        # shorter
        ("cnndm", "verifier", "UPDATES=6 GPUS=8", "lr_scheduler.total_num_update=6"),
        ("gec_base", "train", "REHEARSE=1", "model.encoder.embed_dim=64"),
        ("gec_base", "train", "TRAIN_HOURS=0.1", "optimization.stop_time_hours=0.1"),
        ("gec_small", "decode", "DECODE_LIMIT=9", "work/gec_small/first/test2-9"),
        (
            "tatoeba_en_de",
            "baselines",
            "BASELINE_UPDATES=1200",
            "optimization.max_update=300",
        ),
        # torchrun sets one thread
        ("gec_small", "prepare", "OMP_NUM_THREADS=1", f"--workers {CORES}"),
        # the experiment's drafter, not the last of another block size
        (
            "wmt16_en_ro",
            "block_sizes batch",
            "GPUS=8",
            "wmt16_en_ro/drafter/model.pt --device cuda --batch-sizes",
        ),
        # synthetic pairs have the tokens of real ones
        ("conll14_gec", "prepare synthetic", "GPUS=8", "pairs --seed 1 --tokens"),
        # stand-ins that have the stage
        ("conll14_gec", "memory --small", "GPUS=0", "bench work/ua_gec_small/data-bin"),
        ("conll14_gec", "depth --small", "GPUS=0", "bench work/gec_small/data-bin"),
    ],
)
def test_the_environment_changes_commands(
    experiment: str, stages: str, environment: str, words: str
) -> None:
    changes = dict(word.split("=") for word in environment.split())
    given = commands(experiment, *stages.split(), **changes)
    assert any(words in " ".join(command) for command in given)
    for command in given:
        check_with_its_parser(command)


def one_after_another(*commands: str) -> subprocess.CompletedProcess[str]:
    """Dry runs in one work folder, $AGGDEC_WORK; a line of the errors has the status of one that fails."""
    shown = (f"{command} || echo ended with $? >&2" for command in commands)
    start = ["source scripts/environment.sh", "source scripts/dry_run.sh"]
    return subprocess.run(
        ["bash", "-c", "\n".join([*start, *shown])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_drafter_whose_targets_are_late_learns_from_references_and_says_so() -> None:
    late = "TRAIN_HOURS=0.01 bash scripts/reproduce.sh help_en_de_base drafter"
    targets = '"$AGGDEC_WORK"/help_en_de_base/drafter/targets'
    done = one_after_another(late, f"cat {targets}")
    said = "drafter is trained on references, not distilled"
    assert f"stage redistill has not ended: {said}" in done.stderr
    assert "task.data=work/help_en_de_base/data-bin" in done.stdout
    assert "trained on references, not distilled\n" in done.stdout


def test_a_training_keeps_the_precision_that_it_began_with() -> None:
    """It was stopped, and goes on on another machine."""
    once = 'bash scripts/train.sh gec_small --place "$AGGDEC_WORK/x"'
    done = one_after_another(f"PRECISION=fp32 {once}", f"PRECISION=bf16 {once}")
    assert done.stdout.count("common.bf16=false") == 2


def test_a_shortened_run_never_passes_for_the_whole_one() -> None:
    """What was made of a shortened model is shortened, too, however it is called again."""
    run = "bash scripts/reproduce.sh wmt16_en_ro"
    marks = 'grep -r "" --include="*.shortened" "$AGGDEC_WORK"'
    short = f"UPDATES=6 DECODE_LIMIT=9 PRECISIONS=fp32 {run} teacher distill verifier drafter decode bench"
    others = (
        f"{run} teacher",
        f"PRECISIONS=fp32 {run} decode",
        f"UPDATES=7 {run} teacher",
    )
    done = one_after_another(short, marks, *others)
    for mark in (
        "distilled/data-bin.shortened:UPDATES=6\n",
        "bench/bench.json.shortened:UPDATES=6\n",
        "decode/test/gad/generate-test.txt.shortened:DECODE_LIMIT=9 UPDATES=6\n",
    ):
        assert f"wmt16_en_ro/{mark}" in done.stdout
    said = r"error: .*/(\S+) was shortened by (.*): set (.*) again, or delete it.*\nended with 1\n"
    both = "DECODE_LIMIT=9 UPDATES=6"
    assert re.findall(said, done.stderr) == [
        ("model.pt", "UPDATES=6", "UPDATES=6"),
        ("generate-test.txt", f"{both}, and would now be by UPDATES=6", both),
        ("model.pt", "UPDATES=6, and would now be by UPDATES=7", "UPDATES=6"),
    ]


def test_values_of_the_scripts_themselves_shorten_nothing() -> None:
    """UPDATES=3000 of tatoeba_en_de_base is its whole training."""
    run = "bash scripts/reproduce.sh tatoeba_en_de_base teacher"
    marks = 'find "$AGGDEC_WORK" -name "*.shortened"'
    done = one_after_another(run, marks, f"UPDATES=7 {run}")
    assert "shortened" not in done.stdout
    assert "teacher/model.pt is whole: unset UPDATES=7" in done.stderr


def test_a_stop_of_pretraining_loses_an_hour_and_the_average_is_of_epochs() -> None:
    assert compose("conll14_gec", "pretrain").checkpoint.save_interval_updates == 1000
    checkpoints = '"$AGGDEC_WORK"/conll14_gec/pretrain/checkpoints'
    names = "{checkpoint10,checkpoint_10_17000}.pt"
    left = one_after_another(
        f"mkdir -p {checkpoints} && touch {checkpoints}/{names}",
        "bash scripts/reproduce.sh conll14_gec pretrain",
        f"ls {checkpoints}",
    ).stdout
    assert "checkpoint10.pt" in left
    assert "checkpoint_10_17000.pt" not in left


def test_mixed_stops_at_once_where_the_big_drafter_is_not_there(tmp_path: Path) -> None:
    done = reproduce("wmt14_en_de", "mixed", GPUS="8", AGGDEC_WORK=str(tmp_path))
    missing = tmp_path / "wmt14_en_de/drafter_big/model.pt"
    assert done.returncode == 1
    assert f"error: mixed needs {missing}: run the stage `big`" in done.stderr


def test_a_dry_run_prints_hours_and_disk_space_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    places = {"TMPDIR": str(tmp_path), "AGGDEC_WORK": str(tmp_path / "work")}
    done = reproduce("gec_bart_12_2", "prepare", "--dry-run", **places)
    said = r"disk, GB: \d+\nhours, .* V100, or .* H100\nmemory of each GPU, GB: \d+\nmemory of the machine, GB: \d+"
    assert re.search(said, done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_list_has_every_experiment_and_an_unknown_stand_in_is_refused(
    tmp_path: Path,
) -> None:
    work = {"AGGDEC_WORK": str(tmp_path)}
    listed = reproduce("--list", **work).stdout
    assert all(re.search(rf"^{name} ", listed, re.MULTILINE) for name in ABOUT)
    for words, status, said in (
        ("wmt16_ro_en no-such-stage", 2, "no-such-stage; configs/tatoeba_de_en has:"),
        ("mucgec_small", 1, "--small: mucgec_small is small itself"),
        ("shared", 2, "usage: .* wmt14_en_de"),
    ):
        done = reproduce(*words.split(), "--small", **work)
        assert done.returncode == status
        assert re.search(said, done.stderr)
