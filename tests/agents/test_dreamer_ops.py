"""The seam to the GPU kernels: only `ops` calls them, and nothing needs them."""

import os
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fallow
from fallow.agents.dreamer import ops
from fallow.agents.dreamer.gpu import launch

ROOT = Path(fallow.__file__).parent
TESTS = Path(__file__).parents[1]
UPDATE = """
import sys
from functools import partial
import jax, numpy as np
from small_dreamer import MICRO, by_sequence, random_batch
from fallow.agents.dreamer import ops, train

assert (ops.kernels is None) == (sys.argv[2] == "without")
batch = by_sequence(random_batch(MICRO))
learner = jax.jit(partial(train.init, MICRO), static_argnums=(1, 2))(
    jax.random.key(0), batch["observation"].shape[-1], batch["action"].shape[-1]
)
out = jax.jit(partial(train.update, MICRO))(learner, batch, jax.random.key(1))
leaves, _ = jax.tree_util.tree_flatten_with_path(out)
np.savez(sys.argv[1], **{jax.tree_util.keystr(k): x for k, x in leaves})
"""
JAX_WARNING = (  # of jax 0.11.2 and 0.12.0, pallas/triton/pallas_call_registration.py
    "The Pallas Triton backend is deprecated and will be removed in"
    " a future JAX version. To keep using Pallas on GPU, please migrate"
    " to the Mosaic GPU backend. To keep using Triton, switch to"
    " the official Triton bindings and jax_triton."
)


# ------------------------------------------------------------------------- the seam


def test_only_ops_reaches_the_kernels() -> None:
    words = ("dreamer.gpu", "import gpu", "ops.kernels", "import kernels")
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "gpu" not in path.parts and any(w in path.read_text() for w in words)
    }
    assert found == {"agents/dreamer/ops.py"}


def test_without_the_kernels_an_update_is_the_same_to_the_bit(tmp_path) -> None:
    """In a copy of the package that lacks their folder."""
    copy = tmp_path / "without"
    left_out = shutil.ignore_patterns("gpu", "__pycache__")
    shutil.copytree(ROOT, copy / "fallow", ignore=left_out)
    started = {}
    for name, source in (("with", ROOT.parent), ("without", copy)):
        paths = os.pathsep.join(map(str, (source, TESTS)))
        started[name] = subprocess.Popen(
            [sys.executable, "-c", UPDATE, str(tmp_path / f"{name}.npz"), name],
            env={**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"},
            stderr=subprocess.PIPE,
            text=True,
        )
    for process in started.values():
        _, error = process.communicate()
        assert process.returncode == 0, error
    present, copied = (np.load(tmp_path / f"{name}.npz") for name in started)
    assert len(present.files) > 100 and present.files == copied.files
    for name in present.files:
        np.testing.assert_array_equal(present[name], copied[name], name)


# ------------------------------------------------------------------------- warnings


@pytest.fixture
def on_gpu(monkeypatch):
    """As on a GPU before the first warning."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.delenv("FALLOW_KERNELS", raising=False)
    ops._warn.cache_clear()
    yield monkeypatch
    ops._warn.cache_clear()


def reported(*asked: tuple) -> list[str]:
    """The reasons given when each kernel is asked for twice and does not fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kernel, *given in asked * 2:
            assert not ops.fits(kernel, *given)
    assert all(warning.category is RuntimeWarning for warning in caught)
    texts = [str(warning.message) for warning in caught]
    assert all("up to 1.6 times slower on an H200" in text for text in texts)
    return [text.partition("(docs/speed.md): ")[2] for text in texts]


def test_kernels_that_fit_give_no_warning(on_gpu, recwarn) -> None:
    parts = [jnp.zeros((8, 128))] * 3
    assert ops.fits("norm_silu", 256) and ops.fits("bins") and ops.fits("stack", *parts)
    assert not recwarn.list


def test_each_reason_is_reported_once(on_gpu) -> None:
    asked = ("norm_silu", 48), ("norm_silu", 256, 8), ("posterior", 64, 48)
    unlike = [jnp.zeros((8, 128)), jnp.zeros((8, 256))]
    uneven = [jnp.zeros((5, 300))] * 2
    assert reported(*asked, ("stack", *unlike), ("stack", *uneven)) == [
        "norm_silu needs powers of two from 16, not 48",
        "norm_silu needs powers of two from 16, not 8",
        "posterior needs powers of two from 16, not 48",
        "stack needs arrays that are alike, of a multiple of 1024 numbers",
    ]


ALL_KERNELS = (("norm_silu", 256), ("bins",), ("stack", jnp.zeros(1024)))


@pytest.mark.parametrize(
    ("setting", "reasons"),
    [
        ("off", ["FALLOW_KERNELS=off"]),
        (
            "off:norm_silu,bins,stack",
            [f"FALLOW_KERNELS=off:{name}" for name in ("norm_silu", "bins", "stack")],
        ),
    ],
)
def test_a_setting_is_reported(on_gpu, setting, reasons) -> None:
    on_gpu.setenv("FALLOW_KERNELS", setting)
    assert reported(*ALL_KERNELS) == reasons


def test_a_missing_backend_is_reported(on_gpu) -> None:
    on_gpu.setitem(sys.modules, "jax.experimental.pallas.triton", None)
    assert reported(*ALL_KERNELS) == [f"jax {jax.__version__} has no Pallas for Triton"]


def test_missing_kernels_are_reported(on_gpu) -> None:
    on_gpu.setattr(ops, "MISSING", "its kernels cannot be imported (why)")
    assert reported(*ALL_KERNELS) == ["its kernels cannot be imported (why)"]


def test_a_small_array_gives_no_warning(on_gpu, recwarn) -> None:
    """On cartpole the actor's outputs are 512 numbers a step."""
    ops.stack_steps(*[jnp.zeros((256, 2))] * 3)
    assert not recwarn.list


def test_a_processor_gets_no_warning(recwarn, monkeypatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    ops._warn.cache_clear()
    assert not any(ops.fits(*asked) for asked in ALL_KERNELS)
    assert not recwarn.list


# ---------------------------------------------------------------------- jax's warning


def test_the_warning_of_jax_is_silenced_and_no_other() -> None:
    """By importing the kernels, where every warning is an error."""
    script = (
        "import sys, warnings; from fallow.agents.dreamer import gpu\n"
        "warnings.warn(sys.argv[1], eval(sys.argv[2]))"
    )
    ran = {}
    for given in (
        (JAX_WARNING, "DeprecationWarning"),
        (JAX_WARNING, "UserWarning"),
        ("another " + JAX_WARNING, "DeprecationWarning"),
    ):
        command = [sys.executable, "-W", "error", "-c", script, *given]
        done = subprocess.run(command, capture_output=True, text=True)
        ran[given] = done.returncode == 0
    assert list(ran.values()) == [True, False, False]


def test_pytest_silences_the_same_warning() -> None:
    """It sets filters of its own for every test."""
    settings = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())
    filters = settings["tool"]["pytest"]["ini_options"]["filterwarnings"]
    assert f"ignore:{launch.DEPRECATED}:DeprecationWarning" in filters
    warnings.warn(JAX_WARNING, DeprecationWarning, stacklevel=1)
