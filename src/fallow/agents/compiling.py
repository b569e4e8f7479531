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
from fallow.core import files

LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "numpy")
SETTINGS = ("XLA_FLAGS", "FALLOW_KERNELS")
OPTIONS = ("jax_default_matmul_precision", "jax_enable_x64")
"""Of the environment and of JAX: what a compiled program depends on."""
GPU_OPTIONS = {"xla_disable_hlo_passes": "triton-softmax-rewriter"}
"""What the compiler of a GPU is told. That pass begins fusions of norms and softmaxes
that a later one weighs for half a minute, to save one kernel in a hundred or in six.
"""


def keep_compiled(folder: str | Path | None = None) -> Path:
    """Keep compiled programs in a folder; it can be carried to a like machine.

    Unless given it is `$FALLOW_CACHE`, or `fallow` in the user's cache. What lies there
    is run, so take it from nobody you would not take a program from.
    """
    default = os.environ.get("FALLOW_CACHE") or Path.home() / ".cache" / "fallow"
    folder = Path(folder or default)
    folder.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    # kernels carry the lines that called them: one kernel would be compiled for each,
    # and be another one wherever the sources lie elsewhere
    jax.config.update("jax_traceback_in_locations_limit", 0)
    return folder


def on_processor() -> bool:
    """Whether programs run on the host's own cores."""
    return jax.default_backend() == "cpu"


class Program:
    """A compiled function; on an accelerator it is kept on disk as a whole.

    JAX keeps what the compiler made, but to find it again it traces the function, which
    takes three seconds for an agent's update. A program is found by what it is made of:
    the sources and settings, the libraries, the device, the arguments' shapes.

    Args:
        function: what to compile.
        name: tells it from all functions that have the same sources and shapes.
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
        try:
            program, given, result = pickle.loads(path.read_bytes())
            return serialize_executable.deserialize_and_load(
                program, given, result, execution_devices=jax.devices()[:1]
            )
        except (OSError, EOFError, ValueError, pickle.PickleError, RuntimeError):
            pass  # not there, cut off, or of another machine: it is made anew
        compiled = self.jitted.lower(*arguments).compile()
        with contextlib.suppress(OSError, ValueError, NotImplementedError):
            # a full disk, a device whose programs cannot be written: not kept, but run
            content = pickle.dumps(serialize_executable.serialize(compiled))
            with files.whole(path) as part:
                part.write_bytes(content)
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


def _folder() -> Path | None:
    """Where an accelerator's programs are kept, if they are."""
    cached = jax.config.values["jax_compilation_cache_dir"]
    return None if cached is None or on_processor() else Path(cached) / "programs"


@cache
def _sources() -> str:
    """A digest of all that agents and their replay are made of."""
    root = Path(fallow.__file__).parent
    files = sorted((*root.glob("agents/**/*.py"), *root.glob("replay/**/*.py")))
    return hashlib.sha256(b"".join(own.read_bytes() for own in files)).hexdigest()
