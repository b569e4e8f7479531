"""The velocities of known environments are where Gymnasium's own models have them."""

import json
import warnings
from pathlib import Path

import gymnasium
import h5py
import log_files
import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.dynamics import gym as fallow_gym
from fallow.dynamics.tasks import TASKS
from fallow.logs import Columns, from_data, read_log
from fallow.logs.known_environments import LAYOUTS, layout_of
from fallow.logs.log import Log

HUMANOID = {
    f"include_{name}_in_observation": False
    for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")
}
OPTIONS = {
    "Ant-v4": [{}, {"use_contact_forces": True}],
    "Ant-v5": [{}, {"include_cfrc_ext_in_observation": False}],
    "Humanoid-v5": [{}, HUMANOID],
    "HumanoidStandup-v5": [{}, HUMANOID],
}
NO_POSITIONS_LEFT_OUT = {"exclude_current_positions_from_observation": False}
ALWAYS_WITHOUT_POSITIONS = (
    "HumanoidStandup-v4",
    *(
        f"{name}-v{version}"
        for name in ("InvertedDoublePendulum", "InvertedPendulum", "Pusher", "Reacher")
        for version in (4, 5)
    ),
)
NOT_HERE = ("Pusher-v4",)
"""Needs mujoco < 3; its observation is that of Pusher-v5."""


def variants() -> list[tuple[str, dict]]:
    """Every known environment in both versions, with the options that move columns."""
    found = []
    for name in LAYOUTS:
        for version in (4, 5):
            env_id = f"{name}-v{version}"
            for options in OPTIONS.get(env_id, [{}]):
                if env_id not in NOT_HERE:
                    found.append((env_id, options))
                    if env_id not in ALWAYS_WITHOUT_POSITIONS:
                        found.append((env_id, options | NO_POSITIONS_LEFT_OUT))
    return found


def driven_columns(env: gymnasium.Env, width: int) -> list[int]:
    """By perturbation: the first column that follows the velocity of each actuator."""
    env.reset(seed=0)
    body = env.unwrapped
    model, found = body.model, []
    still = np.full(model.nv, 0.1)  # within what some environments clip to
    for joint in model.actuator_trnid[:, 0]:
        moved = still.copy()
        moved[model.jnt_dofadr[joint]] += 1
        pair = []
        for velocity in (still, moved):
            body.set_state(body.init_qpos, velocity)
            pair.append(body._get_obs())
        changes = pair[1] - pair[0]
        assert len(changes) == width
        exact = np.flatnonzero(np.isclose(changes, 1.0))
        found.append(int(exact[0]))
    return found


@pytest.mark.parametrize(("env_id", "options"), variants())
def test_columns_follow_the_joint_that_each_actuator_drives(
    env_id: str, options: dict
) -> None:
    with warnings.catch_warnings(action="ignore"):  # version 4 is out of date
        env = gymnasium.make(env_id, **options)
    width = env.observation_space.shape[0]
    layout = layout_of(env_id)
    assert layout is not None and width in layout.first
    columns = [layout.first[width] + dof for dof in layout.dofs]
    assert columns == driven_columns(env, width)
    assert layout.n_dofs == env.unwrapped.model.nv
    assert len(layout.dofs) == env.action_space.shape[0]
    env.close()


def test_every_width_belongs_to_an_environment() -> None:
    """None is in the table that no variant above has."""
    seen = {name: set() for name in LAYOUTS}
    for env_id, options in variants():
        with warnings.catch_warnings(action="ignore"):
            env = gymnasium.make(env_id, **options)
        seen[env_id.split("-")[0]].add(env.observation_space.shape[0])
        env.close()
    assert seen == {name: set(layout.first) for name, layout in LAYOUTS.items()}


@pytest.mark.parametrize("task", TASKS)
def test_our_own_environments_are_known_by_their_ids(task: str) -> None:
    layout, body = layout_of(fallow_gym.environment_id(task)), TASKS[task].body
    assert layout is not None
    assert layout.dofs == body.actuator_velocity
    assert dict(layout.first) == {len(body.columns): 0}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("halfcheetah_medium-v2", "HalfCheetah"),
        ("hopper-medium-expert-v2", "Hopper"),
        ("walker2d_full_replay-v2", "Walker2d"),
        ("ant_random_expert-v2", "Ant"),
        ("antmaze-umaze-v2", "Ant"),
        ("Ant_maze_u-maze_noisy_multistart_False_multigoal_False_sparse", "Ant"),
        ("ant_run3", None),
        ("anthill_medium", None),
        ("my-HalfCheetah-v5", None),
        ("Ant-v1", None),
        ("", None),
    ],
)
def test_names_of_files_and_ids(name: str, known: str | None) -> None:
    assert layout_of(name) == (LAYOUTS[known] if known else None)


def ant(log: Log) -> list[dict]:
    """Episodes as Ant-v5 has them: contact forces after the velocities."""
    found = []
    for velocity, action in log_files.episodes(log):
        observation = np.ones((len(velocity), 105))
        observation[:, 27:] = 1e3
        tiled = np.tile(velocity, 3)[:, :8]
        observation[:, [25, 26, 19, 20, 21, 22, 23, 24]] = tiled
        found.append(
            {"observations": observation, "actions": np.tile(action, 3)[:, :8]}
        )
    return found


def write_minari(path: Path, episodes: list[dict], spec: object) -> Path:
    with h5py.File(path, "w") as file:
        file.attrs["env_spec"] = spec if isinstance(spec, str) else json.dumps(spec)
        for index, episode in enumerate(episodes):
            for name, values in episode.items():
                file[f"episode_{index}/{name}"] = values
    return path


def test_the_actuators_of_an_ant_find_their_joints(
    small_log: Log, tmp_path: Path
) -> None:
    """Its last columns are contact forces, and its joints come in another order."""
    path = write_minari(tmp_path / "a.hdf5", ant(small_log), {"id": "Ant-v5"})
    found = read_log(path)
    np.testing.assert_array_equal(found.velocity, np.tile(small_log.velocity, 3)[:, :8])
    assert "velocities of Ant-v5: observations[25]" in found.notes[1]
    some = read_log(path, Columns(action="actions[2],actions[0]"))
    np.testing.assert_array_equal(some.velocity, found.velocity[:, [2, 0]])


WRAPPED = [{"name": "NormalizeObservation", "entry_point": "x", "kwargs": None}]


@pytest.mark.parametrize(
    "spec",
    [
        {"id": "MyRobot-v5"},
        {"id": "Ant-v5", "additional_wrappers": WRAPPED},
        {"id": "Ant-v5", "kwargs": {"xml_file": "go1.xml"}},
        {"id": "HalfCheetah-v5"},
        {"id": 7},
        '{"id": "Ant-v5"',
        "",
    ],
)
def test_a_place_alone_is_never_taken_for_a_velocity(
    spec: object, small_log: Log, tmp_path: Path
) -> None:
    path = write_minari(tmp_path / "a.hdf5", ant(small_log), spec)
    with pytest.raises(FallowError, match=r"--velocity .* among .*observations\[0:105"):
        read_log(path)
    assert read_log(path, Columns(velocity="observations[19:27]")).n_episodes == 24


@pytest.mark.parametrize(
    ("velocity", "action"),
    [("velocity", "action"), ("qvel", "ctrl"), ("joint_vel", "commands")],
)
def test_more_velocities_than_actions_are_not_guessed(
    velocity: str, action: str, small_log: Log
) -> None:
    """A base may come first, and a door handle last."""
    content = log_files.rows(small_log)
    wide = np.concatenate([content["velocity"], content["velocity"][:, :1]], axis=1)
    data = {velocity: wide, action: content["action"], "episode": content["episode"]}
    with pytest.raises(FallowError, match=rf"--velocity '{velocity}\[1\],{velocity}"):
        from_data(data)
    data[velocity] = content["velocity"]
    np.testing.assert_array_equal(from_data(data).velocity, small_log.velocity)
