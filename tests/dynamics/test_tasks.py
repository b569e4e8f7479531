"""Every task against dm_control, number for number."""

import logging

import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.dynamics import EPISODE_FRAMES, TASKS, Worlds
from fallow.dynamics.simulator import compile_body

TOLERANCE = 1e-9


def oracle(task: str, seed: int):
    """dm_control's environment of the same task, or a skip that says why not."""
    logging.disable(logging.WARNING)  # its cheetah warns of an old attribute
    suite = pytest.importorskip("dm_control.suite", reason="dm_control is the oracle")
    domain, name = task.split("-", 1)
    return suite.load(domain, name, task_kwargs={"random": seed})


def flat(timestep) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in timestep.observation.values()])


@pytest.mark.parametrize("task", TASKS)
def test_two_episodes_equal_dm_control(task: str, random: np.random.Generator) -> None:
    env = oracle(task, seed=7)
    worlds = Worlds(task, seeds=[[7, 8]], action_repeat=1)
    for _ in range(2):
        timestep = env.reset()
        np.testing.assert_allclose(
            worlds.observation[0, 0], flat(timestep), 0, TOLERANCE
        )
        for _ in range(EPISODE_FRAMES):
            action = random.uniform(-1, 1, worlds.n_actuators)
            timestep = env.step(action)
            step = worlds.step(np.stack([action, -action])[None])
            np.testing.assert_allclose(
                step.observation[0, 0], flat(timestep), 0, TOLERANCE
            )
            assert step.reward[0, 0] == pytest.approx(timestep.reward, abs=TOLERANCE)
        assert timestep.last() and step.truncated.all()


@pytest.mark.parametrize("task", TASKS)
def test_action_bounds_and_control_step_equal_dm_control(task: str) -> None:
    env = oracle(task, seed=0)
    worlds = Worlds(task, action_repeat=1)
    spec = env.action_spec()
    assert spec.shape == (worlds.n_actuators,)
    assert (spec.minimum == -1).all() and (spec.maximum == 1).all()
    assert worlds.control_step_s == pytest.approx(env.control_timestep())


@pytest.mark.parametrize("task", TASKS)
def test_actuator_velocity_is_the_driven_joints_velocity(task: str) -> None:
    """The named observation column moves with the joint of each actuator."""
    worlds = Worlds(task)
    body = TASKS[task].body
    model, _ = worlds.snapshot()
    assert len(body.actuator_velocity) == model.nu
    for actuator, column in enumerate(body.actuator_velocity):
        joint = model.actuator_trnid[actuator, 0]
        for _ in range(3):
            worlds.step(np.full((1, 1, model.nu), 0.5))
        _, data = worlds.snapshot()
        assert worlds.observation[0, 0, column] == data.qvel[model.jnt_dofadr[joint]]


def test_actuator_velocities_of_the_papers_bodies() -> None:
    assert TASKS["walker-walk"].body.actuator_velocity == tuple(range(18, 24))
    assert TASKS["cheetah-run"].body.actuator_velocity == tuple(range(11, 17))


@pytest.mark.parametrize("task", TASKS)
def test_columns_are_named_once_each(task: str) -> None:
    columns = TASKS[task].body.columns
    assert len(set(columns)) == len(columns)
    assert Worlds(task).observation.shape == (1, 1, len(columns))


@pytest.mark.parametrize(
    ("task", "mass_kg"), [("walker-walk", 28.54), ("cheetah-run", 14.0)]
)
def test_published_masses(task: str, mass_kg: float) -> None:
    model = compile_body(TASKS[task].body)
    assert model.body_mass.sum() == pytest.approx(mass_kg, abs=0.005)


@pytest.mark.parametrize("task", TASKS)
def test_starts_and_observations_vary(task: str, random: np.random.Generator) -> None:
    """No two seeds start alike, and no observation column is constant."""
    worlds = Worlds(task, seeds=[[1, 2]])
    assert not np.array_equal(worlds.observation[0, 0], worlds.observation[0, 1])
    seen = [
        worlds.step(random.uniform(-1, 1, (1, 2, worlds.n_actuators))).observation[0, 0]
        for _ in range(200)
    ]
    spread = np.ptp(np.array(seen), axis=0)
    assert (spread > 0).all()


def test_unknown_task_names_the_nearest() -> None:
    with pytest.raises(FallowError, match="did you mean 'walker-walk'"):
        Worlds("walker-wlak")
