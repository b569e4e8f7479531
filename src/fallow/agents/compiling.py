"""Compiled programs kept on disk, so that a second start takes seconds."""

import contextlib
import hashlib
import os
import pickle
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
from jax.experimental import serialize_executable

import fallow
from fallow.agents import program_cache

LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "numpy")
SETTINGS = ("XLA_FLAGS", "FALLOW_KERNELS")
OPTIONS = ("jax_default_matmul_precision", "jax_enable_x64")
"""Of the environment and of JAX: what a compiled program depends on."""
GPU_OPTIONS = {"xla_disable_hlo_passes": "triton-softmax-rewriter"}
"""Options of the compiler of a GPU. That pass begins fusions of norms and softmaxes
that a later one weighs for half a minute, to save one kernel in a hundred or in six.
"""


def keep_compiled(folder: str | Path | None = None, trusted: bool = False) -> Path:
    """Keep compiled programs in a folder; it can be carried to a like machine.

    Unless given it is `$FALLOW_CACHE`, or `fallow` in the user's cache. Its programs
    are run, so a given folder that another machine or user filled needs `trusted`.

    Raises:
        FallowError: the folder is another user's, or was filled elsewhere.
    """
    default = os.environ.get("FALLOW_CACHE") or Path.home() / ".cache" / "fallow"
    trusted = trusted or folder is None
    folder = Path(folder or default)
    program_cache.open_cache(folder, trusted)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    # kernels carry the lines that called them: one kernel would be compiled for each,
    # and be another one wherever the sources lie elsewhere
    jax.config.update("jax_traceback_in_locations_limit", 0)
    return folder


def on_processor() -> bool:
    """Whether programs run on the host's cores."""
    return jax.default_backend() == "cpu"


class Program:
    """A compiled function; on an accelerator it is kept on disk as a whole.

    JAX keeps what the compiler made, but to find it again it traces the function, which
    takes three seconds for an agent's update. A program is found by what it is made of:
    the sources and settings, the libraries, the device, the arguments' shapes.

    Args:
        function: what to compile.
        name: separates it from functions that have the same sources and shapes.
        donate: arguments whose memory the results may take.
        keep: whether to keep it, on an accelerator and after `keep_compiled`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        donate: tuple[int, ...] = (),
        keep: bool = True,
    ) -> None:
        options = GPU_OPTIONS if jax.default_backend() == "gpu" else None
        self.jitted = jax.jit(function, donate_argnums=donate, compiler_options=options)
        self._name, self._keep = name, keep
        self._loaded: dict[tuple[tuple[int, ...], ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        shapes = tuple(leaf.shape for leaf in jax.tree.leaves(arguments))
        if shapes not in self._loaded:
            self._loaded[shapes] = self._found(arguments)
        return self._loaded[shapes](*arguments)

    def _found(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        folder = _folder()
        if folder is None or not self._keep:
            return self.jitted
        path = folder / f"{self._name.split(maxsplit=1)[0]}-{self._key(arguments)}"
        loaded = _loaded(path)
        if loaded is not None:
            return loaded
        compiled = self.jitted.lower(*arguments).compile()
        with contextlib.suppress(OSError, ValueError, NotImplementedError):
            # a full disk, a device whose programs cannot be written: not kept, but run
            payload = pickle.dumps(serialize_executable.serialize(compiled))
            program_cache.write(path, payload)
        return compiled

    def _key(self, arguments: tuple[Any, ...]) -> str:
        leaves, tree = jax.tree.flatten(arguments)
        kinds = [(leaf.shape, str(leaf.dtype)) for leaf in leaves]
        device = jax.devices()[0]
        parts = (
            self._name,
            _sources(),
            [metadata.version(library) for library in LIBRARIES],
            [os.environ.get(setting) for setting in SETTINGS],
            [jax.config.values[option] for option in OPTIONS],
            [device.device_kind, device.client.platform_version],
            str(tree),
            kinds,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _loaded(path: Path) -> Callable[..., Any] | None:
    """A program from disk; None if it is missing, altered, or of another device."""
    payload = program_cache.read(path)
    if payload is None:
        return None
    try:
        program, given, result = pickle.loads(payload)
        return serialize_executable.deserialize_and_load(
            program, given, result, execution_devices=jax.devices()[:1]
        )
    except (EOFError, ValueError, pickle.PickleError, RuntimeError):
        return None


def _folder() -> Path | None:
    """Where an accelerator's programs are kept, if they are."""
    cached = jax.config.values["jax_compilation_cache_dir"]
    return (
        None
        if cached is None or on_processor()
        else Path(cached) / program_cache.PROGRAMS
    )


@cache
def _sources() -> str:
    """A digest of all that agents and their replay are made of."""
    root = Path(fallow.__file__).parent
    files = sorted((*root.glob("agents/**/*.py"), *root.glob("replay/**/*.py")))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
