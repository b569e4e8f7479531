"""Frames played at once are the frames played one by one."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from conftest import assert_same, roll

from fallow.dynamics import TASKS, Worlds
from fallow.dynamics.frames import plays_at_once
from fallow.dynamics.simulator import compile_body
from fallow.dynamics.tasks import cheetah

SEEDS = [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("action_repeat", [1, 2, 5])
@pytest.mark.parametrize("condition", ["none", "gain:shift_frame=300", "friction"])
def test_all_frames_at_once_equal_one_by_one(
    action_repeat: int, condition: str
) -> None:
    task = TASKS["cheetah-run"]
    assert plays_at_once(task)
    looked_at = replace(task, body=replace(task.body, fields=("qpos", "qvel", "ctrl")))
    assert not plays_at_once(looked_at)
    one, other = (
        Worlds(each, condition, SEEDS, action_repeat=action_repeat)
        for each in (task, looked_at)
    )
    n_steps = 1010 // action_repeat  # past the end of an episode
    randoms = [np.random.default_rng(0) for _ in range(2)]
    steps, others = roll(one, n_steps, randoms[0]), roll(other, n_steps, randoms[1])
    for step, other_step in zip(steps, others, strict=True):
        np.testing.assert_allclose(step.reward, other_step.reward, 0, 1e-12)
    same = [
        step._replace(reward=o.reward) for step, o in zip(steps, others, strict=True)
    ]
    assert_same(same, others)


def test_a_snapshot_is_up_to_date() -> None:
    for name in ("cheetah-run", "walker-walk"):
        worlds = Worlds(name, seeds=SEEDS)
        roll(worlds, 20, np.random.default_rng(0))
        model, data = worlds.snapshot(1, 2)
        height = data.xpos[1, 2]
        mujoco.mj_forward(model, data)
        assert data.xpos[1, 2] == height


def test_the_cheetahs_forward_speed_is_mujocos() -> None:
    sensor = '<sensor><subtreelinvel body="torso"/></sensor><actuator>'
    mjcf = cheetah.MJCF.replace("<actuator>", sensor)
    model = compile_body(replace(cheetah.BODY, mjcf=mjcf))
    data = mujoco.MjData(model)
    random = np.random.default_rng(0)
    for _ in range(100):
        data.qpos[:], data.qvel[:] = random.normal(0, 3, (2, 9))
        mujoco.mj_forward(model, data)

        class OneWorld:
            qpos, qvel = data.qpos[None], data.qvel[None]

        (speed,) = cheetah.forward_speed(OneWorld)
        assert speed == pytest.approx(data.sensordata[0], abs=1e-12)
