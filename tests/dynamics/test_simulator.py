"""Only a MuJoCo that can work is accepted, and what is left out is never missed."""

import sys

import mujoco
import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.dynamics import TASKS
from fallow.dynamics.simulator import (
    _stop_profiling_clock,
    check_version,
    compile_body,
)


@pytest.mark.parametrize("version", ["3.17.0", "3.18.2", "3.99.0"])
def test_versions_that_work(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize("version", ["2.3.7", "3.9.0", "3.16.1", "4.0.0"])
def test_versions_that_cannot_work_are_named_with_those_that_can(version: str) -> None:
    with pytest.raises(FallowError, match=f"mujoco {version}.*'mujoco>=3.17,<4'"):
        check_version(version)


@pytest.mark.parametrize("task", TASKS)
def test_leaving_out_machinery_changes_no_number(task: str) -> None:
    """Our lighter model against the same description compiled as it stands."""
    body = TASKS[task].body
    light = compile_body(body)
    full = mujoco.MjModel.from_xml_string(body.mjcf)
    if body.total_mass_kg is not None:
        mujoco.mj_setTotalmass(full, body.total_mass_kg)
        mujoco.mj_setConst(full, mujoco.MjData(full))
    data = [mujoco.MjData(model) for model in (light, full)]
    start, _ = body.sample_start(full, np.random.RandomState(3))
    random = np.random.default_rng(0)
    for one in data:
        one.qpos[:] = start
    touched = 0
    for _ in range(2000):
        action = random.uniform(-1, 1, full.nu)
        for model, one in zip((light, full), data, strict=True):
            one.ctrl[:] = action
            mujoco.mj_step(model, one)
        np.testing.assert_array_equal(data[0].qpos, data[1].qpos)
        touched += data[0].ncon
        assert data[0].ncon == data[1].ncon
    assert (touched > 0) == (body.name not in ("cartpole", "pendulum"))


@pytest.mark.skipif(sys.platform != "linux", reason="the library is found on Linux")
def test_the_profiling_clock_is_stopped_and_can_be_started() -> None:
    model = compile_body(TASKS["pendulum-swingup"].body)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    assert data.timer[0].duration == 0
    mujoco.set_mjcb_time(None)
    mujoco.mj_step(model, data)
    assert data.timer[0].duration > 0
    _stop_profiling_clock(mujoco)
