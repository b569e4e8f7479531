"""What the commands that train share."""

import contextlib
import importlib.util
from collections.abc import Iterator

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
