"""Compiled programs kept on disk, so that a second start takes seconds."""

import os
from pathlib import Path

import jax


def keep_compiled(folder: str | Path | None = None) -> Path:
    """Keep compiled programs in a folder; it can be carried to a like machine.

    Unless given it is `$FALLOW_CACHE`, or `fallow` in the user's cache.
    """
    default = os.environ.get("FALLOW_CACHE") or Path.home() / ".cache" / "fallow"
    folder = Path(folder or default)
    folder.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    return folder
