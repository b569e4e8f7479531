"""Optional libraries: import one, or say how to install it."""

import importlib
import importlib.metadata
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError

ROOT = Path(__file__).parents[3]
"""Of a clone."""


EXTRA_OF = {"gymnasium": "gym", "jax": "fleet", "equinox": "fleet", "optax": "fleet"}
"""Of libraries that public names import."""


def explained(
    error: ModuleNotFoundError, user: str, extra: str | None = None
) -> ModuleNotFoundError:
    """The same error, with who needs the library and how to install it.

    `extra` has it, or the one that has a library of public names.
    """
    extra = extra or EXTRA_OF.get(error.name or "")
    if extra is None or (error.name or "").partition(".")[0] == "fallow":
        return error
    command = install_command(extra)
    return ModuleNotFoundError(
        f"{user} needs {error.name}; install it with {command}", name=error.name
    )


def load(module: str, extra: str, user: str) -> Any:
    """Import a module of an optional library.

    Raises:
        FallowError: it is missing; the message says who needs it and how to install it.
    """
    library = module.split(".")[0]
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise FallowError(
            f"{user} needs the library '{library}'; install it with "
            f"{install_command(extra)}"
        ) from None
    return importlib.import_module(module)


def install_command(extra: str) -> str:
    """The command that installs what an extra needs, for a clone and for a wheel.

    It names the libraries themselves: PyPI does not have Fallow.
    """
    try:
        listed = importlib.metadata.requires("fallow") or []
    except importlib.metadata.PackageNotFoundError:  # run from its sources
        listed = []
    of_extra = re.compile(rf"extra == ['\"]{extra}['\"]$")
    needed = [
        line.partition(";")[0].strip() for line in listed if of_extra.search(line)
    ]
    return shlex.join([*_pip(), "install", *(needed or ["-e", f"{ROOT}[{extra}]"])])


def _pip() -> list[str]:
    """The pip of this interpreter, by the shortest name that finds it."""
    pip, python = shutil.which("pip"), Path(sys.executable)
    if pip is not None and Path(pip).parent == python.parent:
        return ["pip"]
    return [sys.executable, "-m", "pip"]
