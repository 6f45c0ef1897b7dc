"""Options that cannot be honoured are refused by name, and before a model is read."""

import math
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from fairseq_cli import generate as generate_command
from fairseq_cli import interactive as interactive_command

import fairseq_aggdec
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.generation.modes import MODES
from fairseq_aggdec.tasks.fairseq_options import refused

PLUGIN = Path(fairseq_aggdec.__file__).parent
REFUSED = {
    "--sampling": [],
    "--nbest": ["2"],
    "--constraints": [],
    "--lm-path": ["/nowhere/lm.pt"],
    "--diverse-beam-groups": ["2"],
    "--diversity-rate": ["0.5"],
    "--print-alignment": [],
    "--retain-dropout": [],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """All that a task needs."""
    for language in ("src", "tgt"):
        (tmp_path / f"dict.{language}.txt").write_text("a 1\n")
    return tmp_path


@pytest.fixture
def command_error(data: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command on a checkpoint that is not there; returns the message it ends with."""

    def run(
        decoding: str,
        *options: str,
        command: Any = generate_command,
        name: str = "translation",
    ) -> str:
        line = f"fairseq {data} --path /nowhere/model.pt --user-dir {PLUGIN} -s src -t tgt --cpu"
        line += f" --task aggressive_{name} --decoding {decoding}"
        monkeypatch.setattr("sys.argv", [*line.split(), *options])
        with pytest.raises(AggdecError) as caught:
            command.cli_main()
        return str(caught.value)

    return run


@pytest.mark.parametrize(
    "decoding, command, options",
    [
        ("iad", generate_command, [*REFUSED]),
        # with other numbers of beams and hypotheses fairseq asserts
        ("greedy", interactive_command, ["--sampling"]),
        # it has several hypotheses
        ("aggressive-beam", generate_command, [*REFUSED][2:]),
    ],
)
def test_before_the_model_is_looked_for(
    command_error: Any, decoding: str, command: Any, options: list[str]
) -> None:
    given = [word for option in options for word in (option, *REFUSED[option])]
    message = command_error(decoding, *given, command=command)
    assert message.startswith(f"--decoding {decoding} cannot honour ")
    assert message.endswith(": leave it out, or use --decoding beam")
    assert [option for option in options if option not in message] == []


def test_what_mbart_drops_in_silence_is_named(command_error: Any) -> None:
    """Its own generator has neither; the options of a task with `add_args` come in a namespace."""
    given = "--langs src,tgt --lm-path /nowhere/lm.pt --diversity-rate 0.5".split()
    message = command_error("greedy", *given, name="translation_from_pretrained_bart")
    assert message.startswith(
        "--decoding greedy cannot honour --lm-path, --diversity-rate: leave it out"
    )


@pytest.mark.parametrize(
    "decoding, options",
    [
        ("beam", "--nbest 2 --lm-path lm.pt --diverse-beam-groups 1 --print-alignment"),
        ("aggressive-beam", "--beam 7 --nbest 7"),
        # fairseq's defaults, or without effect
        ("iad", "--beam 7 --nbest 1 --diversity-rate -1"),
        ("iad", "--score-reference --nbest 2"),  # nothing is decoded
    ],
)
def test_what_is_allowed_reaches_the_model(
    command_error: Any, decoding: str, options: str
) -> None:
    message = command_error(decoding, *options.split())
    assert "checkpoint /nowhere/model.pt: no such file" in message


def test_a_value_that_makes_no_sense_is_named(command_error: Any) -> None:
    assert (
        command_error("aggressive-beam", "--beam", "-1")
        == "--beam -1: must be at least 1"
    )
    assert (
        command_error("iad", "--lenpen", "nan")
        == "--lenpen nan: must be a finite number"
    )
    values = {
        "beam": 0,
        "nbest": 0,
        "unkpen": -math.inf,
        "temperature": math.nan,
        "max_len_a": math.inf,
    }
    for name, value in values.items():
        (fault,) = refused(MODES["iad"], Namespace(**{name: value}))
        assert fault.startswith(f"{option_name(name)} {value}: must be")
    assert refused(MODES["iad"], Namespace(unkpen=math.inf)) == [], (
        "it bans unknown words"
    )


def test_all_that_is_wrong_is_named_at_once(command_error: Any) -> None:
    options = "--sampling --lenpen nan --drafter-path d.pt --int8 --bf16"
    message = command_error("iad", *options.split())
    for fault in (
        "(1) --int8 and --bf16: one precision at a time; (2) --drafter-path is read by",
        "(3) --lenpen nan: must be a finite number; (4) --decoding iad cannot honour --",
    ):
        assert fault in message


def test_what_a_program_hands_over() -> None:
    assert refused(MODES["iad"], Namespace()) == []
    handed_over: dict[str, dict[str, Any]] = {
        "--sampling": {"options": Namespace(sampling=True)},
        "--lm-path": {"lm_model": object()},
        "prefix_allowed_tokens_fn": {"prefix_fn": lambda sentence, tokens: []},
    }
    for option, given in handed_over.items():
        (fault,) = refused(MODES["iad"], **{"options": Namespace(), **given})
        assert option in fault
