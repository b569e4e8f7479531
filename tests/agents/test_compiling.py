from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh
from test_tdmpc_fleet import MICRO

from fallow.agents import compiling
from fallow.agents.compiling import Program
from fallow.agents.dreamer.gpu import kernels
from fallow.agents.fleet import Fleet
from fallow.agents.tdmpc.agent import TdMpc
from fallow.core.records import Branch


@pytest.fixture(autouse=True, scope="module")
def traced_once() -> None:
    """Not here, where it is counted."""


class Traced:
    """A function that counts how often it is traced; on a device it never runs."""

    n = 0

    def __call__(self, x: jax.Array, pair: tuple[jax.Array, float]) -> dict:
        self.n += 1
        return {"sum": x + pair[0], "product": x * pair[1]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """As on an accelerator, with a folder for its programs."""
    options = ("jax_compilation_cache_dir", "jax_traceback_in_locations_limit")
    before = {option: jax.config.values[option] for option in options}
    monkeypatch.setattr(compiling, "on_processor", lambda: False)
    compiling.keep_compiled(tmp_path)
    yield tmp_path / "programs"
    for option, value in before.items():
        jax.config.update(option, value)


def call(function: Traced, n: int = 3, name: str = "a", **named) -> np.ndarray:
    program = Program(function, name, **named)
    x, y = jnp.arange(float(n)), jnp.float32(2)
    out = program(x, (x, y))
    assert out["product"].tolist() == [2 * i for i in range(n)]
    return np.asarray(out["sum"])


def test_a_kept_program_is_not_traced_again(folder) -> None:
    first, second = Traced(), Traced()
    np.testing.assert_array_equal(call(first), call(second))
    assert (first.n, second.n) == (1, 0)
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    "change", ["shape", "name", "source", "setting", "cut off", "not kept", "forgotten"]
)
def test_what_makes_it_another_program(folder, monkeypatch, change: str) -> None:
    call(Traced())
    again, named = Traced(), {}
    if change == "source":
        monkeypatch.setattr(compiling, "_sources", lambda: "other")
    elif change == "setting":
        monkeypatch.setenv("FALLOW_KERNELS", "off")
    elif change == "cut off":
        (path,) = folder.iterdir()
        path.write_bytes(path.read_bytes()[:-100])
    elif change == "forgotten":
        jax.config.update("jax_compilation_cache_dir", None)
    else:
        named = {"shape": {"n": 4}, "name": {"name": "b"}, "not kept": {"keep": False}}
        named = named[change]
    call(again, **named)
    assert again.n == 1


def test_options_reach_the_compiler_of_a_gpu(folder, monkeypatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    call(Traced())
    monkeypatch.setattr(compiling, "GPU_OPTIONS", {"no_such_option": "1"})
    with pytest.raises(Exception, match="no_such_option"):
        call(Traced(), name="b")


def test_one_program_serves_several_shapes(folder) -> None:
    function = Traced()
    program = Program(function, "a", donate=(0,))
    for n in (2, 3, 2, 3):
        x = jnp.ones(n)
        assert program(x, (jnp.ones(n), jnp.float32(0)))["sum"].tolist() == [2] * n
        assert x.is_deleted()
    assert function.n == 2


@pytest.mark.slow
def test_a_fleet_of_kept_programs_learns_the_same(folder, monkeypatch) -> None:
    branches = [Branch(0), Branch(1, "none", "recency:window_transitions=300")]
    steps = MICRO.prefill_transitions + 3

    def state_of_fleet() -> list:
        agent = TdMpc("micro", MICRO, 3, 1)
        fleet = Fleet("pendulum-swingup", agent, branches, 4000)
        fleet.run(steps * fleet.frames_per_step)
        return jax.tree.map(np.asarray, [fleet.learners.state, fleet.carry])

    made, found = state_of_fleet(), state_of_fleet()
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {
        "init",
        "explore",
        "update",
    }
    monkeypatch.undo()
    jax.tree.map(np.testing.assert_array_equal, made, found)
    jax.tree.map(np.testing.assert_array_equal, made, state_of_fleet())


def test_a_kernel_does_not_say_where_its_sources_lie(folder, monkeypatch) -> None:
    """Or a program would be another one wherever they lie elsewhere."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    width = jnp.ones(16)
    norm_silu = jax.jit(partial(kernels.norm_silu, width, width, epsilon=1e-3))
    card = AbstractDevice("NVIDIA H200", num_cores=132, platform="gpu")
    with use_abstract_mesh(AbstractMesh((), (), abstract_device=card)):
        traced = norm_silu.trace(x=jnp.ones((8, 16)))
        lowered = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "triton" in lowered
    assert ".py" not in lowered


def test_nothing_is_kept_on_a_processor(folder, monkeypatch) -> None:
    monkeypatch.undo()
    again = Traced()
    call(Traced())
    call(again)
    assert again.n == 1
    assert not folder.exists()
