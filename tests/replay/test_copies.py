"""Copies of all that has a state continue as the original does, and apart from it."""

import copy
import pickle
from functools import partial

import gymnasium
import numpy as np
import pytest
from conftest import assert_same, roll
from test_buffer import EVERY_RULE, SMALL, fill, filled

from fallow.core.errors import FallowError
from fallow.dynamics import Worlds
from fallow.dynamics.gym import ShiftDynamics, environment_id
from fallow.replay import Buffer, Field
from fallow.replay.device_buffer import DeviceBuffer

COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda it: pickle.loads(pickle.dumps(it)),
}
by_copy = pytest.mark.parametrize("kind", COPIES)


def batches(buffer: Buffer) -> list[dict[str, np.ndarray]]:
    return [buffer.sample(8, 16) for _ in range(5)]


def assert_equal_batches(one: list, other: list) -> None:
    for mine, theirs in zip(one, other, strict=True):
        for name, values in mine.items():
            np.testing.assert_array_equal(values, theirs[name], name)


@by_copy
@pytest.mark.parametrize("rule", EVERY_RULE)
@pytest.mark.parametrize("n_worlds", [1, 2])
def test_a_copied_buffer_goes_on(kind: str, rule: str, n_worlds: int) -> None:
    """What is added after the copy is sampled too, not zeros."""
    buffer = filled(700, n_worlds, rule=rule)
    other = COPIES[kind](buffer)
    for each in (buffer, other):
        fill(each, 300, begin=700)
    assert_equal_batches(batches(buffer), batches(other))
    if rule == "passive":
        assert max(int(b["serial"].max()) for b in batches(other)) > 700


@by_copy
def test_a_copied_buffer_is_apart(kind: str) -> None:
    buffer = filled(400)
    other = COPIES[kind](buffer)
    before = batches(copy.deepcopy(other))
    fill(buffer, 700, begin=400)
    assert_equal_batches(before, batches(other))


@by_copy
def test_a_copy_of_a_buffer_in_files_is_in_memory(kind: str, tmp_path) -> None:
    buffer = filled(300, folder=tmp_path)
    other = COPIES[kind](buffer)
    assert_equal_batches(batches(buffer), batches(other))
    assert not isinstance(other.storage.rows, np.memmap)


def test_a_deep_copy_of_a_fleets_buffer_goes_on() -> None:
    fields = {**SMALL, "serial": Field((), "int32")}
    buffer = DeviceBuffer(fields, ["passive", "reset"], [0, 1], 1, 1000)
    fleets = [buffer, copy.deepcopy(buffer)]
    for each in fleets:
        for serial in range(100):
            x = np.full((2, 1, 2), serial, np.float32)
            each.add(
                is_first=np.full((2, 1), serial == 0),
                world=np.zeros((2, 1), np.int32),
                serial=np.full((2, 1), serial, np.int32),
                x=x,
            )
    one, other = (each.batch(each.sample(1, 4, 8)) for each in fleets)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], name)
    assert np.asarray(one["x"]).any()


@by_copy
def test_copied_worlds_go_on(kind: str) -> None:
    conditions = ["gain:shift_frame=20", "friction:shift_frame=20,draw_frames=20"]
    worlds = Worlds("walker-walk", conditions, [[0, 1], [2, 3]], n_threads=1)
    roll(worlds, 7, np.random.default_rng(0))
    other = COPIES[kind](worlds)
    both = [roll(each, 7, np.random.default_rng(1)) for each in (worlds, other)]
    assert_same(*both)


@by_copy
def test_a_copied_task_goes_on(kind: str) -> None:
    env = gymnasium.make(environment_id("pendulum-swingup"), condition="recurring")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    action = np.array([0.5], np.float32)
    seen = [each.step(action)[0] for each in (env, COPIES[kind](env))]
    np.testing.assert_array_equal(*seen)


def gain_of(env: gymnasium.Env) -> float:
    return float(env.unwrapped.model.actuator_gainprm[0, 0])


@by_copy
@pytest.mark.parametrize("shifted", [False, True])
def test_a_copied_wrapper_shifts(kind: str, shifted: bool) -> None:
    """The model that is stepped, before and after the change, as `info` says."""
    env = ShiftDynamics(gymnasium.make("HalfCheetah-v5"), "gain:shift_frame=3")
    full = gain_of(env)
    env.reset(seed=0)
    for _ in range(5 if shifted else 1):
        env.step(env.action_space.sample())
    other = COPIES[kind](env)
    other.reset(seed=0)
    assert gain_of(other) == (full / 2 if shifted else full)
    for _ in range(4):
        *_, info = other.step(other.action_space.sample())
    assert info["regime"] == 1 and gain_of(other) == full / 2
    assert gain_of(env) == (full / 2 if shifted else full)


def test_two_shifts_of_one_environment_are_refused() -> None:
    env = ShiftDynamics(gymnasium.make("HalfCheetah-v5"), "gain:shift_frame=0")
    with pytest.raises(FallowError, match="shifted by 'gain:shift_frame=0' already"):
        ShiftDynamics(gymnasium.wrappers.ClipAction(env), "damage")
    full = 2 * gain_of(env)
    again = ShiftDynamics(env.env, "gain:g=0.1,shift_frame=0")
    assert gain_of(again) == pytest.approx(0.1 * full)  # not 0.1 of what was left


def test_vectors_of_shifted_environments() -> None:
    """Each in its own process, where it is pickled."""
    make = partial(ShiftDynamics, condition="gain:shift_frame=2")
    envs = gymnasium.make_vec(
        "HalfCheetah-v5", 2, vectorization_mode="sync", wrappers=[make]
    )
    envs.reset(seed=0)
    for _ in range(3):
        *_, info = envs.step(envs.action_space.sample())
    assert info["regime"].tolist() == [1, 1]
    envs.close()
