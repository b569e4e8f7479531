"""A fleet that runs ahead of its device is the one that waits for every program.

Updates are started by a thread of their own, arrays are given away while programs still
read them, evaluations run concurrently: none of that may change a number. With
`make test-gpu` this is a fleet of `lean` on a GPU, where all of it happens.
"""

import dataclasses
from collections.abc import Iterator
from concurrent.futures import Future

import jax
import numpy as np
import pytest
from small_dreamer import MICRO

from fallow.agents.compiling import keep_compiled
from fallow.agents.dreamer.agent import Dreamer
from fallow.agents.dreamer.config import PRESETS
from fallow.agents.dreamer.gpu import launch
from fallow.agents.fleet import Fleet
from fallow.agents.programs import Programs
from fallow.core.records import Branch
from fallow.dynamics import TASKS
from fallow.replay.device_buffer import DeviceBuffer

pytestmark = pytest.mark.slow  # run by `make test-slow`, on a card by `make test-gpu`

ON_GPU = launch.on_gpu()
TASK = "walker-walk" if ON_GPU else "pendulum-swingup"
LEAN = dataclasses.replace(
    PRESETS["lean"], prefill_transitions=300, pretrain_updates=20
)
N_STEPS, EVALUATED_AT = (900, 400) if ON_GPU else (100, 80)


def trained(evaluate: str) -> tuple[Fleet, np.ndarray]:
    """A fleet after so many steps, and its evaluation on the way."""
    body = TASKS[TASK].body
    sizes = len(body.columns), len(body.actuator_velocity)
    agent = Dreamer("hurry", LEAN if ON_GPU else MICRO, *sizes)
    branches = [Branch(0), Branch(1), Branch(2, rule="recency:window_transitions=100")]
    fleet = Fleet(TASK, agent, branches, capacity_transitions=4000)
    evaluation = None
    while fleet.n_steps < N_STEPS:
        fleet.step()
        if fleet.n_steps == EVALUATED_AT:
            evaluation = getattr(fleet, evaluate)(2)
    jax.block_until_ready(fleet.learners.state)
    return fleet, evaluation if evaluate == "evaluate" else evaluation.finish()


def waiting(function):
    """The same method, and all that it started is done."""

    def run(self, *given, **named):
        result = function(self, *given, **named)
        jax.block_until_ready((result, getattr(self, "groups", None)))
        return result

    return run


class AtOnce:
    """A thread of one's own that is none."""

    def submit(self, function, *given) -> Future:
        done: Future = Future()
        done.set_result(function(*given))
        return done


@pytest.fixture(scope="module")
def hurried(tmp_path_factory) -> Iterator[tuple[Fleet, np.ndarray]]:
    kept = jax.config.values["jax_compilation_cache_dir"]
    keep_compiled(tmp_path_factory.mktemp("cache"))  # both run the same programs
    yield trained("evaluate_concurrently")
    jax.config.update("jax_compilation_cache_dir", kept)


def test_waiting_changes_nothing(hurried, monkeypatch) -> None:
    for owner, name in ((Programs, "update"), (Programs, "act"), (DeviceBuffer, "add")):
        monkeypatch.setattr(owner, name, waiting(getattr(owner, name)))
    begun = Fleet.__init__

    def begin(self, *given, **named) -> None:
        begun(self, *given, **named)
        self._starter = AtOnce()

    monkeypatch.setattr(Fleet, "__init__", begin)
    (fast, beside), (slow, alone) = hurried, trained("evaluate")
    assert (slow.learners.updates > 20).all()
    np.testing.assert_array_equal(fast.learners.updates, slow.learners.updates)
    np.testing.assert_array_equal(beside, alone)
    for one, other in zip(
        jax.tree.leaves((fast.learners.state, fast.buffer.groups)),
        jax.tree.leaves((slow.learners.state, slow.buffer.groups)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
