"""What a study was made with: versions and the commit of the source."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path

import fallow

PACKAGES = ("jax", "jaxlib", "mujoco", "numpy", "optax", "equinox")


def versions() -> dict[str, str]:
    """Versions of the software in use."""
    found = {"fallow": fallow.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """The commit of this source, with a plus if files were changed; None outside."""
    where = Path(fallow.__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(where), *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
