"""Shared by the tests: small runs of worlds, and conditions that change early."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

from fallow import cli
from fallow.diagnosis import Example, example
from fallow.dynamics import Worlds
from fallow.logs.log import Log

# programs of the tests run for moments: compiling them must not take longer, and like
# fleets compile once; set in the environment, since not every test needs jax
COMPILED = str(Path(__file__).parents[1] / ".pytest_cache" / "compiled")
XLA_FLAGS = "--xla_backend_optimization_level=0"
if metadata.version("jaxlib").startswith("0.10."):  # a flag that is unknown ends JAX
    XLA_FLAGS += " --xla_cpu_use_fusion_emitters=false"  # these compile 3 times slower
os.environ.setdefault("XLA_FLAGS", XLA_FLAGS)
os.environ["FALLOW_CACHE"] = os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"

hypothesis.settings.register_profile("fallow", deadline=None)  # machines are noisy
hypothesis.settings.load_profile("fallow")

LONGEST_FIRST = (
    "study/test_study.py",
    "cli/test_terminal.py",
    "agents/test_fleet.py",
    "dynamics/test_worlds.py",
    "agents/test_training.py",
    "agents/test_evaluation.py",
    "agents/test_tdmpc_fleet.py",
    "repo/test_fuzz.py",
    "core/test_legacy.py",
)
"""Files that take the longest: last, they would keep one process busy alone."""

TRACED: dict[str, Any] = {}
"""Programs of this process by their key; see `traced_once`."""

# every condition, with changes inside the first episode of two worlds
EARLY_CONDITIONS = {
    "none": "none",
    "gain": "gain:shift_frame=400",
    "damage": "damage:shift_frame=400",
    "recurring": "recurring:shift_frame=404,period_frames=300",
    "reversal": "reversal:shift_frame=400",
    "damping": "damping:shift_frame=400,draw_frames=200",
    "friction": "friction:shift_frame=400,draw_frames=200,std=0.2",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; `--dist loadfile` hands files out in this order."""
    first = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: first.get("/".join(item.path.parts[-2:]), len(first)))


def roll(worlds: Worlds, n_steps: int, random: np.random.Generator) -> list:
    """Step with random actions; one agent's actions do not depend on the others."""
    streams = random.spawn(worlds.n_agents)
    shape = (n_steps, worlds.n_worlds, worlds.n_actuators)
    actions = np.stack([stream.uniform(-1, 1, shape) for stream in streams], axis=1)
    return [worlds.step(action) for action in actions]


def assert_same(
    steps: Sequence, others: Sequence, agents: slice | list[int] = slice(None)
) -> None:
    """Two runs are equal to the bit; the second may be some of the first's agents."""
    assert len(steps) == len(others)
    for step, other in zip(steps, others, strict=True):
        for name, values in step._asdict().items():
            np.testing.assert_array_equal(values[agents], getattr(other, name), name)


EXAMPLES = Path(__file__).parents[1] / "examples"


def output_of_example(name: str, folder: Path) -> str:
    """What an example prints when it is run from `folder`."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_close(ours: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Two trees of arrays are equal, up to a share of each array's largest number."""
    import jax

    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True)
    for one, other in pairs:
        scale = max(float(np.abs(other).max()), 1e-6)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


@pytest.fixture(autouse=True, scope="module")
def traced_once() -> Iterator[None]:
    """Fleets that are alike share their programs, where a module has fleets at all.

    On a processor, where every fleet traces its agent's update anew for seconds.
    """
    compiling = sys.modules.get("fallow.agents.compiling")
    if compiling is None:
        yield
        return
    find_program = compiling.Program._found

    def found(program: Any, arguments: tuple[Any, ...]) -> Any:
        if not (program._keep and compiling.on_processor()):
            return find_program(program, arguments)
        key = program._key(arguments)
        if key not in TRACED:
            TRACED[key] = program.jitted.lower(*arguments).compile()
        return TRACED[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiling.Program, "_found", found)
        yield


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture) -> Run:
    """Run a command in this process: exit code, stdout, stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


def diagnosis(run: Run, *arguments: object) -> dict:
    """What `fallow diagnose --json` says of one log."""
    code, out, error = run("diagnose", *arguments, "--json")
    assert code == 0, error
    return json.loads(out)


@pytest.fixture
def only_svg(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports leave out PNG and PDF, which take most of their time."""
    monkeypatch.setattr("fallow.report.figures.report_figure.METADATA", {})


@pytest.fixture(scope="session")
def small_log() -> Log:
    """24 episodes of 40 transitions; three joints lose half their gain at the 12th."""
    return example(Example(n_episodes=24, change_points=(12,), n_steps=40))
