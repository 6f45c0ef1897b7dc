"""Every stage of every experiment: the commands that it gives are ones that the programs take."""

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from experiments.about import About, read_about
from experiments.experiment import load_module
from experiments.results import Results
from fairseq import options
from omegaconf import OmegaConf

from fairseq_aggdec.cli.measure import Bench
from fairseq_aggdec.cli.verbs import parse
from fairseq_aggdec.lab.bench.modes import parse_modes
from fairseq_aggdec.lab.bench.record import Run
from tests.configs.composing import CONFIGS, ROOT, compose, experiments, written
from tests.configs.recording import recorded, reproduce

ABOUT = [read_about(CONFIGS / name) for name in experiments()]
FULL_SIZE = [item.name for item in ABOUT if item.full_size]
SMALL = [item.name for item in ABOUT if not item.full_size]
PARSERS = {
    "fairseq-generate": options.get_generation_parser,
    "fairseq-interactive": options.get_interactive_generation_parser,
}


def stages_of(experiment: str) -> list[str]:
    """What an unknown stage's error lists."""
    done = reproduce(experiment, "no-such-stage", "--dry-run")
    assert done.returncode == 2
    return done.stderr.strip().rpartition(" has: ")[2].split()


@cache
def commands_of(experiment: str) -> list[list[str]]:
    """The commands of all stages of an experiment."""
    return recorded(
        experiment, *stages_of(experiment), GPUS="8" if experiment in FULL_SIZE else "0"
    )


@pytest.fixture(params=FULL_SIZE + SMALL)
def commands(request: pytest.FixtureRequest) -> tuple[str, list[list[str]]]:
    """(experiment, the commands of all its stages)."""
    return request.param, commands_of(request.param)


def test_trainings_compose(commands: tuple[str, list[list[str]]]) -> None:
    experiment, given = commands
    trainings = [command for command in given if command[0] == "fairseq-hydra-train"]
    assert trainings or experiment == "outside"
    folders = [
        [word for word in command if word.startswith("checkpoint.save_dir=")][-1]
        for command in trainings
    ]
    assert len(set(folders)) == len(folders), "two models in one folder"
    languages = set()
    for command in trainings:
        folder, name, overrides = model_and_overrides(command)
        if experiment in FULL_SIZE:
            of_paper = written(folder, name)
            sizes = OmegaConf.from_dotlist(
                [
                    word
                    for word in overrides
                    if word.startswith(("optimiz", "distributed"))
                ]
            )
            assert batch(OmegaConf.merge(of_paper, sizes)) == batch(of_paper)
        task = compose(folder, name, overrides).task
        languages.add((task.get("source_lang"), task.get("target_lang")))
    assert len(languages) <= 1, experiment


def model_and_overrides(command: list[str]) -> tuple[str, str, tuple[str, ...]]:
    """Folder in configs/, model and overrides of a training; one path for all, as compose() makes each only once."""
    folder, name = (
        command[command.index(option) + 1]
        for option in ("--config-dir", "--config-name")
    )
    overrides = [
        re.sub("=[^=]*/.*", "=path", word)
        for word in command[5:]
        if not word.startswith("hydra.")
    ]
    return Path(folder).name, name, tuple(overrides)


def test_a_shorter_training_composes_whatever_its_schedule() -> None:
    """Only one that falls to an end is told where it is."""
    given = recorded("cnndm", "distill", "verifier", "drafter", UPDATES="6")
    trainings = [
        model_and_overrides(command)
        for command in given
        if command[0] == "fairseq-hydra-train"
    ]
    verifier, drafter = (compose(*training) for training in trainings)
    assert (verifier.lr_scheduler._name, verifier.lr_scheduler.total_num_update) == (
        "polynomial_decay",
        6,
    )
    assert (drafter.lr_scheduler._name, drafter.optimization.max_update) == (
        "inverse_sqrt",
        6,
    )


def batch(config: Any) -> int:
    """Of how many GPU's gradients an update is made."""
    frequency = OmegaConf.select(config, "optimization.update_freq", default=[1])
    return int(frequency[0] * config.distributed_training.distributed_world_size)


def test_what_is_read_was_made(commands: tuple[str, list[list[str]]]) -> None:
    """Models that are decoded with, learned from or averaged have been trained before."""
    _, given = commands
    made: set[Path] = set()
    for command in given:
        text = " ".join(command)
        needed = [
            Path(part)
            for word in command
            for part in re.split("[:=]", word)
            if part.endswith("/model.pt")
        ]
        for path in needed:
            assert (
                path in made
                or {"bart", "demo"} & set(path.parts)
                or path.parent.name == "teacher"
            ), text
        made |= {
            Path(word.partition("=")[2]).parent / "model.pt"
            for word in command
            if "checkpoint.save_dir=" in word
        }


def test_decoding_and_measuring(commands: tuple[str, list[list[str]]]) -> None:
    _, given = commands
    generated = [command for command in given if command[0] == "fairseq-generate"]
    outputs = [command[command.index("--results-path") + 1] for command in generated]
    assert len(set(outputs)) == len(outputs), "two decodings in one folder"
    for command in given:
        if command[0] in PARSERS:
            # alike commands are parsed once
            parsed_by_fairseq(
                command[0],
                *("work" if word.startswith("work/") else word for word in command[1:]),
            )
        elif "fairseq_aggdec.cli.verbs" in command:
            args = parse(command[3:])
            assert not isinstance(args, Bench) or parse_modes(
                args.modes, args.peers, args.nat_peer
            )


@cache
def parsed_by_fairseq(program: str, *words: str) -> Any:
    """The options of a command, which this plugin refuses where the mode does not read one of them."""
    return options.parse_args_and_arch(PARSERS[program](), list(words))


class Asked(Results):
    """Results of an experiment of which everything that is asked for is noted, and nothing was measured."""

    def __init__(self, config: Path, work: Path) -> None:
        super().__init__(config, work, work)
        self.asked: set[tuple[str, str]] = set()
        self.timed: set[tuple[str, str]] = set()

    def score(self, subset: str, label: str) -> Mapping[str, float]:
        self.asked.add((subset, label))
        return {}

    def run(self, name: str, mode: str) -> Run | None:
        self.timed.add((name, mode.replace(":", "-")))
        return None


def test_tables_are_of_what_is_decoded_and_measured(
    commands: tuple[str, list[list[str]]], tmp_path: Path
) -> None:
    """Every score of tables.py has a decoding that it can come from, and every table a measurement or a decoding."""
    experiment, given = commands
    outputs = [
        Path(words[words.index("--results-path") + 1])
        for words in given
        if words[0] == "fairseq-generate"
    ]
    assert {output.parts[-4:-2] for output in outputs} <= {(experiment, "decode")}
    decoded, measured = (
        {output.parts[-2:] for output in outputs},
        measurements(experiment, given),
    )
    results = Asked(CONFIGS / experiment, tmp_path)
    declared = load_module(CONFIGS / experiment / "tables.py")
    for table in declared.papers(results):
        for system in filter(None, (table.greedy, table.beam)):
            table.table.check("row", system)
    assert results.asked <= decoded
    unknown = {name for name, _ in results.timed} - {name for name, _, _ in measured}
    assert {name for name in unknown if not name.startswith("../")} <= {
        "bench/bench"
    }, "of scores' rows"
    own = getattr(declared, "OWN", {})
    assert all(
        table.grid() is None for function in own.values() for table in function(results)
    ), "nothing measured"


def of_bench(command: list[str]) -> bool:
    return command[2:4] == ["fairseq_aggdec.cli.verbs", "bench"]


def measurements(experiment: str, given: list[list[str]]) -> set[tuple[str, str, int]]:
    """Record, mode as part of a label, and batch size of all that is timed."""
    found = set()
    for command in given:
        if of_bench(command):
            args: Any = parse(command[3:])
            record = (
                args.json.with_suffix("").as_posix().rpartition(f"/{experiment}/")[2]
            )
            modes = [
                mode.name.replace(":", "-")
                for mode in parse_modes(args.modes, args.peers, args.nat_peer)
            ]
            found |= {
                (record, mode, size) for mode in modes for size in args.batch_sizes
            }
        elif "super-resolve" in command:
            folder = Path(command[command.index("--output") + 1])
            record = f"{folder.parent.name}/{folder.name}/record"
            found |= {
                (record, mode, 1) for mode in ("greedy", "blockwise", "approximate")
            }
    return found


@pytest.mark.parametrize(
    ("experiment", "stage", "expected"),
    [
        ("gec_small", "train", True),
        ("sign_digits_sr", "base", True),
        ("wmt14_en_de", "teacher", False),
    ],
)
def test_gpus_change_the_update_frequency_and_a_processor_without_bfloat16_the_precision(
    experiment: str, stage: str, expected: bool
) -> None:
    training = next(
        c
        for c in recorded(experiment, stage, PRECISION="fp32", GPUS="2")
        if "hydra" in c[0]
    )
    assert ("common.bf16=false" in training) is expected
    if experiment == "wmt14_en_de":
        assert {
            "distributed_training.distributed_world_size=2",
            "optimization.update_freq=[16]",
        } <= {*training}


def test_models_of_base_size_are_rehearsed_tiny_and_trained_by_the_clock() -> None:
    training = next(
        c
        for c in recorded("gec_base", "train", REHEARSE="1", TRAIN_HOURS="0.055")
        if "hydra" in c[0]
    )
    assert {"model.encoder.embed_dim=64", "optimization.stop_time_hours=0.055"} <= {
        *training
    }
    assert [word for word in training if "max_update=" in word][
        -1
    ] == "optimization.max_update=20"


def test_a_drafter_whose_targets_are_late_learns_from_references_and_says_so() -> None:
    done = reproduce("help_en_de_base", "drafter", "--dry-run", TRAIN_HOURS="0.01")
    assert (
        "stage redistill has not ended: drafter is trained on references, not distilled"
        in done.stderr
    )
    assert "task.data=work/help_en_de_base/data-bin" in done.stdout
    folder = '"$AGGDEC_WORK"/help_en_de_base/drafter'
    again = "bash scripts/reproduce.sh help_en_de_base drafter"
    left = one_after_another(
        f"mkdir -p {folder}; echo late >{folder}/targets", again, f"ls {folder}"
    ).stdout
    assert "model.pt" in left
    assert "targets" not in left


def one_after_another(*commands: str) -> subprocess.CompletedProcess[str]:
    """Dry runs in one work folder, $AGGDEC_WORK; a line of the errors has the status of one that fails."""
    shown = (f"{command} || echo ended with $? >&2" for command in commands)
    script = "\n".join(
        ["source scripts/environment.sh", "source scripts/dry_run.sh", *shown]
    )
    return subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )


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
    assert "wmt16_en_ro/distilled/data-bin.shortened:UPDATES=6\n" in done.stdout
    assert "wmt16_en_ro/bench/bench.json.shortened:UPDATES=6\n" in done.stdout
    assert (
        "wmt16_en_ro/decode/test/gad/generate-test.txt.shortened:DECODE_LIMIT=9 UPDATES=6\n"
        in done.stdout
    )
    said = r"error: .*/(\S+) was shortened by (.*): set (.*) again, or delete it.*\nended with 1\n"
    assert re.findall(said, done.stderr) == [
        ("model.pt", "UPDATES=6", "UPDATES=6"),
        (
            "generate-test.txt",
            "DECODE_LIMIT=9 UPDATES=6, and would now be by UPDATES=6",
            "DECODE_LIMIT=9 UPDATES=6",
        ),
        ("model.pt", "UPDATES=6, and would now be by UPDATES=7", "UPDATES=6"),
    ]


def test_values_of_the_scripts_themselves_shorten_nothing() -> None:
    """UPDATES=3000 of tatoeba_en_de_base is its whole training."""
    run = "bash scripts/reproduce.sh tatoeba_en_de_base teacher"
    done = one_after_another(
        run, 'find "$AGGDEC_WORK" -name "*.shortened"', f"UPDATES=7 {run}"
    )
    assert "shortened" not in done.stdout
    assert (
        "teacher/model.pt is whole: unset UPDATES=7, or name another folder"
        in done.stderr
    )


@pytest.mark.parametrize("experiment", ["wmt16_en_ro", "tatoeba_en_de", "help_en_de"])
def test_stages_after_block_sizes_have_the_experiments_own_drafter(
    experiment: str,
) -> None:
    own = "ablation/k25" if experiment == "help_en_de" else "drafter"
    (batches,) = [
        command
        for command in commands_of(experiment)
        if command[-1].endswith("/bench/batch.json")
    ]
    assert f"work/{experiment}/{own}/model.pt" in batches


def test_mixed_stops_at_once_where_the_big_drafter_is_not_there(tmp_path: Path) -> None:
    done = reproduce("wmt14_en_de", "mixed", GPUS="8", AGGDEC_WORK=str(tmp_path))
    missing = tmp_path / "wmt14_en_de/drafter_big/model.pt"
    assert done.returncode == 1
    assert (
        done.stderr
        == f"error: mixed needs {missing}: run the stage `big`, which makes it, before\n"
    )


def test_text_is_prepared_by_all_cores_also_under_torchruns_one_thread() -> None:
    (prepared,) = recorded("gec_small", "prepare", OMP_NUM_THREADS="1")
    assert prepared[prepared.index("--workers") + 1] == str(
        len(os.sched_getaffinity(0))
    )


def test_a_stop_of_pretraining_loses_an_hour_and_the_average_is_of_epochs() -> None:
    assert compose("conll14_gec", "pretrain").checkpoint.save_interval_updates == 1000
    checkpoints = '"$AGGDEC_WORK"/conll14_gec/pretrain/checkpoints'
    made = f"mkdir -p {checkpoints} && touch {checkpoints}/checkpoint10.pt {checkpoints}/checkpoint_10_17000.pt"
    left = one_after_another(
        made, "bash scripts/reproduce.sh conll14_gec pretrain", f"ls {checkpoints}"
    ).stdout
    assert "checkpoint10.pt" in left
    assert "checkpoint_10_17000.pt" not in left


def test_no_search_of_cnndm_repeats_ngrams_in_silence_and_ten_checkpoints_are_averaged() -> (
    None
):
    """fairseq's own search bans none without its CUDA extension."""
    for command in commands_of("cnndm"):
        if "--no-repeat-ngram-size" in command:
            assert (
                "aggressive-beam" in command
                if "distill" in command
                else "--block-ngrams" in command
            )
            assert (
                command[command.index("--task") + 1] == "aggressive_translation"
                if "--task" in command
                else True
            )
        assert (
            command[command.index("--last") + 1] == "10"
            if "average" in command
            else True
        )


def test_all_heads_stand_on_one_base_model_and_one_trained_head_is_measured_beside_it() -> (
    None
):
    """papers/004 Table 1: k = 1 is 26.00 with a trained head, and 25.56 the base model; least blocks as its §7.1."""
    given = commands_of("wmt14_blockwise")
    measured = {
        Path(c[c.index("--path") + 1]).parent.name for c in given if of_bench(c)
    }
    assert {"base", "distilled-1"} <= measured
    bases = {
        word.split("/")[-2]
        for c in given
        for word in c
        if word.startswith("model.base_checkpoint=")
    }
    assert bases == {"base"}
    assert {
        c[c.index("--min-block") + 1]
        for c in given
        if "--min-block" in c and "valid" in c
    } == {"2", "3"}


@pytest.mark.parametrize("gpus", [3, 8, 16])
def test_images_are_trained_in_the_papers_batches(gpus: int) -> None:
    """papers/004 §7.2: on 8 GPUs; a stop loses 5,000 updates at most."""
    for command in recorded("celeba_sr", "base", "heads", "fine_tune", GPUS=str(gpus)):
        if command[0] == "fairseq-hydra-train":
            model = command[command.index("--config-name") + 1]
            config = OmegaConf.merge(
                written("celeba_sr", model), OmegaConf.from_dotlist(command[5:])
            )
            assert 8 <= batch(config) <= 9
            assert config.checkpoint.save_interval_updates <= 5000


@pytest.mark.parametrize("experiment", ["conll14_gec", "gec_bart_12_2"])
def test_synthetic_pairs_have_the_tokens_of_real_ones(experiment: str) -> None:
    (made,) = [command for command in commands_of(experiment) if "corrupt" in command]
    assert made[5] == f"work/{experiment}/synthetic/pairs"
    assert "--tokens" in made
    for split in (
        command for command in commands_of(experiment) if command[0] == "subword-nmt"
    ):
        assert {"--num-workers", "--input", "--output"} <= set(split), (
            "from standard input one process reads alone"
        )


@pytest.mark.parametrize(
    ("stage", "stand_ins"),
    [("depth", {"gec_small"}), ("memory", {"gec_small", "ua_gec_small"})],
)
def test_a_stand_in_without_the_stage_is_left_out(
    stage: str, stand_ins: set[str]
) -> None:
    measured = [
        command
        for command in recorded("conll14_gec", stage, "--small")
        if of_bench(command)
    ]
    assert {Path(command[4]).parent.name for command in measured} == stand_ins


@pytest.mark.parametrize("experiment", FULL_SIZE)
def test_a_dry_run_shows_what_a_machine_with_gpus_runs(experiment: str) -> None:
    """Each set is decoded and timed in single and in half precision."""
    given = commands_of(experiment)
    assert not [command for command in given if "--cpu" in command]
    folders = {
        (c[c.index("--results-path") + 1], "--fp16" in c)
        for c in given
        if c[0] == "fairseq-generate"
    }
    assert {(f"{name}-fp16", True) for name, half in folders if not half} == {
        pair for pair in folders if pair[1]
    }
    timed: list[Any] = [parse(command[3:]) for command in given if of_bench(command)]
    assert {args.device for args in timed if args.threads is None} <= {"cuda"}
    halves = {args.json.stem.removesuffix("-fp16") for args in timed if args.fp16}
    whole = {args.json.stem for args in timed if not args.fp16 and args.threads is None}
    assert whole - halves <= {
        args.json.stem for args in timed if args.json.parent.name == "blockwise_table"
    }


def test_the_first_sentences_can_be_decoded_alone() -> None:
    data = {
        c[1]
        for c in recorded("gec_small", "decode", DECODE_LIMIT="100")
        if c[0] == "fairseq-generate"
    }
    assert data == {
        f"work/gec_small/first/{subset}-100" for subset in ("test", "test2")
    }


@pytest.mark.parametrize(
    "about", [item for item in ABOUT if item.full_size], ids=lambda item: item.name
)
def test_needs_are_those_of_stages(about: About) -> None:
    assert {*about.more_gpu_hours, *about.more_disk_gb} <= {*stages_of(about.name)}
    assert about.host_gb is not None
    assert about.memory_gb is not None


def test_a_dry_run_prints_hours_and_disk_space_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    places = {"TMPDIR": str(tmp_path), "AGGDEC_WORK": str(tmp_path / "work")}
    done = reproduce("gec_bart_12_2", "prepare", "--dry-run", **places)
    said = r"disk, GB: \d+\nhours, .* V100, or .* H100\nmemory of each GPU, GB: \d+\nmemory of the machine, GB: \d+"
    assert re.search(said, done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_reproduce_lists_every_experiment_and_runs_a_stand_in_that_there_is(
    tmp_path: Path,
) -> None:
    work = {"AGGDEC_WORK": str(tmp_path)}
    listed = reproduce("--list", **work).stdout.splitlines()
    assert {*experiments()} <= {
        line.split()[0] for line in listed[2:] if not line.startswith(" ")
    }
    for words, status, said in (
        (
            ("wmt16_ro_en", "no-such-stage"),
            2,
            "stage no-such-stage; configs/tatoeba_de_en has: prepare teacher",
        ),
        (("mucgec_small",), 1, "--small: mucgec_small is small itself"),
        (("shared",), 2, "wmt14_en_de"),
    ):
        done = reproduce(*words, "--small", **work)
        assert (done.returncode, said in done.stderr) == (status, True), done.stderr
    assert " shared " not in done.stderr
