"""Gymnasium's own checker, its vectors, and a shift on its own bodies."""

import warnings
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from fallow.core.errors import FallowError
from fallow.dynamics import TASKS
from fallow.dynamics.gym import ShiftDynamics, environment_id

THEIRS = ["HalfCheetah-v5", "Walker2d-v5"]


def checked(env: gymnasium.Env) -> None:
    """Gymnasium's checker, less its advice on spaces and on checking wrappers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for advice in ("infinity", "different from the unwrapped", "symmetric"):
            warnings.filterwarnings("ignore", message=f".*{advice}")
        check_env(env, skip_render_check=True)


def test_ids() -> None:
    assert environment_id("walker-walk") == "fallow/WalkerWalk-v0"
    assert {environment_id(task) for task in TASKS} <= set(gymnasium.registry)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("condition", ["none", "gain", "friction"])
def test_our_environments_pass_the_checker(task: str, condition: str) -> None:
    env = gymnasium.make(environment_id(task), condition=condition)
    checked(env.unwrapped)


@pytest.mark.parametrize("name", THEIRS)
def test_the_wrapper_passes_the_checker(name: str) -> None:
    checked(ShiftDynamics(gymnasium.make(name), "recurring"))


def test_an_episode_is_truncated_at_500_transitions() -> None:
    env = gymnasium.make("fallow/PendulumSwingup-v0")
    env.reset(seed=3)
    for step in range(500):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert not terminated and truncated == (step == 499)
    observation, _ = env.reset()
    assert observation[2] == 0


def test_the_truth_is_in_info_and_the_clock_survives_resets() -> None:
    env = gymnasium.make("fallow/WalkerWalk-v0", condition="gain:shift_frame=10")
    shape = env.observation_space.shape
    regimes = []
    for _ in range(2):
        observation, info = env.reset(seed=0)
        regimes.append(info["regime"])
        assert observation.shape == shape
        for _ in range(4):
            regimes.append(env.step(env.action_space.sample())[4]["regime"])
    # two frames a step: frame 10 comes after five steps, over the reset
    assert regimes == [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]


def test_a_drifting_condition_reports_its_level() -> None:
    env = gymnasium.make(
        "fallow/WalkerWalk-v0", condition="friction:shift_frame=4,draw_frames=2"
    )
    _, info = env.reset()
    assert info == {"regime": -1, "level": pytest.approx(0.7)}
    for _ in range(3):
        info = env.step(env.action_space.sample())[4]
    assert info["level"] < 0.7


def test_a_level_that_is_sampled_at_resets_holds_for_whole_episodes() -> None:
    """In our environments, and in anybody's that ends early."""
    condition = "friction:shift_frame=1000"
    ours = gymnasium.make("fallow/PendulumSwingup-v0", condition=condition)
    theirs = ShiftDynamics(gymnasium.make("Hopper-v5"), condition)
    for env, n_steps in ((ours, 500), (theirs, 30)):
        levels = []
        for _ in range(80 if env is theirs else 4):
            _, info = env.reset(seed=0)
            seen = {info["level"]}
            for _ in range(n_steps):
                seen.add(env.step(env.action_space.sample())[4]["level"])
            assert len(seen) == 1
            levels.append(seen.pop())
        assert levels[0] > levels[-1] and len(set(levels)) in (3, 4)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectors_share_a_clock_that_counts_all_of_them(mode: str) -> None:
    envs = gymnasium.make_vec(
        "fallow/PendulumSwingup-v0",
        num_envs=3,
        vectorization_mode=mode,
        condition="gain:shift_frame=12",
        n_worlds=3,
    )
    envs.reset(seed=1)
    regimes = [envs.step(envs.action_space.sample())[4]["regime"] for _ in range(4)]
    envs.close()
    assert np.array(regimes).tolist() == [[0] * 3, [0] * 3, [1] * 3, [1] * 3]


@pytest.mark.parametrize("name", THEIRS)
def test_a_shift_on_gymnasiums_own_bodies(name: str) -> None:
    """From the shift frame on, half the gain equals half the action, and not before."""
    shifted = ShiftDynamics(gymnasium.make(name), "gain:g=0.5,shift_frame=5")
    plain = gymnasium.make(name)
    start, info = shifted.reset(seed=2)
    np.testing.assert_array_equal(start, plain.reset(seed=2)[0])
    assert info["regime"] == 0
    random = np.random.default_rng(0)
    for frame in range(12):
        action = random.uniform(-1, 1, shifted.action_space.shape)
        observation, *_, info = shifted.step(action)
        scale = 0.5 if frame >= 5 else 1.0
        np.testing.assert_array_equal(observation, plain.step(scale * action)[0])
        assert info["regime"] == int(frame >= 5)


def test_the_wrapper_works_in_vectors_and_through_resets() -> None:
    envs = gymnasium.make_vec(
        "HalfCheetah-v5",
        num_envs=2,
        vectorization_mode="sync",
        wrappers=[partial(ShiftDynamics, condition="gain:shift_frame=6", n_worlds=2)],
    )
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    _, info = envs.reset()
    regimes = [info["regime"]]
    regimes += [envs.step(envs.action_space.sample())[4]["regime"] for _ in range(3)]
    envs.close()
    assert np.array(regimes)[:, 0].tolist() == [0, 0, 0, 1]


def test_recurring_gives_the_original_body_back_exactly() -> None:
    env = ShiftDynamics(
        gymnasium.make("HalfCheetah-v5"), "recurring:shift_frame=0,period_frames=1"
    )
    original = gymnasium.make("HalfCheetah-v5").unwrapped.model.actuator_gainprm
    env.reset(seed=0)
    for frame in range(1, 9):
        env.step(env.action_space.sample())
        factor = 0.5 if frame % 2 == 0 else 1.0
        model = env.unwrapped.model
        np.testing.assert_array_equal(model.actuator_gainprm, factor * original)
    env.clock_frames = 1  # as after loading a checkpoint
    np.testing.assert_array_equal(env.unwrapped.model.actuator_gainprm, original)


def test_what_cannot_be_shifted_is_refused() -> None:
    with pytest.raises(FallowError, match="no MuJoCo model"):
        ShiftDynamics(gymnasium.make("CartPole-v1"), "gain")
    with pytest.raises(FallowError, match=r"pass condition="):
        ShiftDynamics(gymnasium.make("fallow/WalkerWalk-v0"), "gain")
    with pytest.raises(FallowError, match="did you mean 'gain'"):
        gymnasium.make("fallow/WalkerWalk-v0", condition="gian")
    with pytest.raises(FallowError, match="actuator is 6"):
        ShiftDynamics(gymnasium.make("HalfCheetah-v5"), "damage:actuator=6")
    cheetah = gymnasium.make("HalfCheetah-v5")
    for n_worlds in (0, "2"):  # a clock that would never move, or fail at a step
        with pytest.raises(FallowError, match=r"n_worlds is .; it must be"):
            ShiftDynamics(cheetah, "gain", n_worlds=n_worlds)
    with pytest.raises(FallowError, match="schedule_seed is -1"):
        ShiftDynamics(cheetah, "friction", schedule_seed=-1)
    with pytest.raises(FallowError, match="no single environment; wrap what"):
        ShiftDynamics("HalfCheetah-v5", "gain")
    with pytest.raises(FallowError, match="a clock of -5 frames; it must be 0"):
        ShiftDynamics(cheetah, "gain").clock_frames = -5


def test_bad_actions_are_refused() -> None:
    env = gymnasium.make("fallow/WalkerWalk-v0").unwrapped
    env.reset(seed=0)
    with pytest.raises(FallowError, match="is nan"):
        env.step(np.full(6, np.nan))
    with pytest.raises(FallowError, match="shape"):
        env.step(np.zeros(5))


def test_rendering_where_there_is_opengl() -> None:
    env = gymnasium.make("fallow/WalkerWalk-v0", render_mode="rgb_array")
    env.reset(seed=0)
    try:
        image = env.render()
    except Exception as error:  # what is raised depends on the missing backend
        pytest.skip(f"no OpenGL here: {error!r}")
    assert image.shape == (240, 320, 3) and image.std() > 0
    env.close()
