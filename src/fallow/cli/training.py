"""What the commands that train share."""

import contextlib
import importlib.util
from collections.abc import Iterator

from fallow.core.errors import FallowError


def need_jax() -> None:
    """Say in one sentence what to install where training is not possible."""
    needed = ("jax", "equinox", "optax")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise FallowError(
            f"training needs {', '.join(missing)}: pip install 'fallow[fleet]'"
        )


@contextlib.contextmanager
def resume_hint(command: str) -> Iterator[None]:
    """Say how to go on when training stops before its end."""
    from fallow.agents.fleet import LearningError
    from fallow.agents.training import Interrupted
    from fallow.dynamics import PhysicsError

    try:
        yield
    except (Interrupted, LearningError, PhysicsError, KeyboardInterrupt) as stopped:
        why = str(stopped) or "stopped"
        raise FallowError(
            f"{why}; go on from the last checkpoint with: {command}"
        ) from None
