"""Errors whose message is all that the user needs: one line on a command line, an exception in a program."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any


class AggdecError(RuntimeError):
    """Something in the user's input is wrong; the message names it and says what to do.

    In a program it is an ordinary exception. Where nothing catches it, Python prints only the message, by
    `install_excepthook`, and exits with 1, as for every uncaught exception.
    """


INTERRUPTED = "interrupted"


def option_name(field: str) -> str:
    """How a field of a configuration is written on the command line: `max_len_a` as `--max-len-a`."""
    return f"--{field.replace('_', '-')}"


def too_small(options: Any, least: float, *fields: str) -> list[str]:
    """A sentence for each of these fields of a configuration that is below `least`; absent ones and None pass."""
    values = {field: getattr(options, field, None) for field in fields}
    return [
        f"{option_name(field)} {value}: must be at least {least}"
        for field, value in values.items()
        if value is not None and not value >= least
    ]


def check_least(options: Any, least: float, *fields: str) -> None:
    """Raise `AggdecError` for what is `too_small`."""
    refuse_all(too_small(options, least, *fields))


def refuse_all(faults: Sequence[str]) -> None:
    """Raise one `AggdecError` that names all faults, each a sentence; nothing where there are none."""
    if len(faults) == 1:
        raise AggdecError(faults[0])
    if faults:
        raise AggdecError(
            "; ".join(
                f"({number}) {fault}" for number, fault in enumerate(faults, start=1)
            )
        )


def reason_of(error: OSError) -> str:
    """What went wrong, with the name of the file where it is known."""
    reason = error.strerror or str(error)
    return reason if error.filename is None else f"{error.filename}: {reason}"


def install_excepthook() -> None:
    """Make Python print errors of the user's input as one line on stderr; other errors go to the previous hook.

    One line gets an uncaught `AggdecError`, and an assertion that starts with an option's name. In fairseq's own
    commands so do an `AggdecError` that fairseq has replaced (it reports any error while loading weights as differing
    architectures), a file that cannot be read or written, and Ctrl-C (exit code 130). A hook rather than `sys.exit`:
    programs that call `from_pretrained` can still catch the error. Installing it twice changes nothing.
    """
    previous = sys.excepthook
    if getattr(previous, "prints_aggdec_errors", False):
        return

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, KeyboardInterrupt) and _is_command_of_fairseq():
            message = INTERRUPTED
        elif isinstance(error, AggdecError) or (
            isinstance(error, AssertionError) and str(error).startswith("--")
        ):
            message = f"error: {error}"
        elif isinstance(error.__context__, AggdecError) and _is_command_of_fairseq():
            message = f"error: {error.__context__}"
        elif isinstance(error, OSError) and error.strerror and _is_command_of_fairseq():
            message = f"error: {reason_of(error)}"
        else:
            previous(kind, error, traceback)
            return
        with suppress(OSError):  # the reader has gone, or the disk is full
            sys.stdout.flush()
        print(message, file=sys.stderr)

    hook.prints_aggdec_errors = True  # type: ignore[attr-defined]
    sys.excepthook = hook


def _is_command_of_fairseq() -> bool:
    """Whether this process is one of fairseq's commands, and no program with errors of its own."""
    # of python -m
    module = getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "")
    return Path(sys.argv[0]).name.startswith("fairseq-") or module.startswith(
        "fairseq_cli."
    )


@contextmanager
def on_command_line() -> Iterator[None]:
    """For the body of a command of this plugin, or as `@on_command_line()` for its main function.

    Errors of the user's input leave it as an `AggdecError`, which `install_excepthook` prints as one line. An
    interrupted command says so and exits with 130, the exit code that shells expect.

    Raises:
        AggdecError: also for an `OSError`, with the name of the file that cannot be read or written.
    """
    install_excepthook()
    try:
        yield
    except OSError as error:
        raise AggdecError(reason_of(error)) from error
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        raise SystemExit(130) from None
