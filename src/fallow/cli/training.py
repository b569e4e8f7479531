"""Options and steps that the commands that train share."""

import contextlib
import dataclasses
import importlib.util
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fallow.cli import INTERRUPTED
from fallow.core.errors import FallowError, RunError
from fallow.core.extras import install_command


def need_jax() -> None:
    """Say in one sentence what to install where training is not possible."""
    needed = ("jax", "equinox", "optax")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise FallowError(
            f"training needs {', '.join(missing)}; install with "
            f"{install_command('fleet')}"
        )


def refuse_with_resume(command: Any, *allowed: str) -> None:
    """Refuse options that a resumed run takes from its folder.

    Raises:
        FallowError: --resume is given with options other than those `allowed`.
    """
    given = [_flag(name) for name in _given(command) if name not in allowed]
    if command.resume is not None and given:
        raise FallowError(
            f"--resume continues the run in {command.resume} with its own options; "
            f"leave out {', '.join(given)}"
        )


def resume_command(
    name: str, folder: Path, command: Any, options: Sequence[str]
) -> str:
    """What to type to resume a run, with those of `options` that were given."""
    words = ["fallow", name, "--resume", str(folder)]
    for option in _given(command):
        if option in options and option != "resume":
            value = getattr(command, option)
            words += [_flag(option), *([] if value is True else [str(value)])]
    return shlex.join(words)


def _given(command: Any) -> list[str]:
    """The options of a command that differ from their defaults."""
    return [
        option.name
        for option in dataclasses.fields(command)
        if getattr(command, option.name) != option.default
    ]


def _flag(name: str) -> str:
    return "NAME" if name == "name" else f"--{name.replace('_', '-')}"


class Stopped(RunError):
    """Training stopped before its end; the message says how to resume."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextlib.contextmanager
def resume_hint(command: str) -> Iterator[None]:
    """Add the command that resumes training where it stops before its end.

    Raises:
        Stopped: after Ctrl-C, or if a loss or the physics is no longer finite.
    """
    from fallow.agents.training import Interrupted

    try:
        yield
    except (Interrupted, RunError, KeyboardInterrupt) as stopped:
        failed = isinstance(stopped, RunError)
        raise Stopped(
            f"{str(stopped) or 'stopped'}; resume from the last checkpoint with: "
            f"{command}",
            exit_code=1 if failed else INTERRUPTED,
        ) from None
