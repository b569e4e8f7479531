"""Data in memory gives the same log as a file, with the same choice of columns."""

import subprocess
import sys
from typing import Any

import log_files
import numpy as np
import pandas as pd
import pytest

from fallow.core.errors import FallowError
from fallow.diagnosis import decide
from fallow.logs import Columns, from_data
from fallow.logs.log import Log


def frame(log: Log) -> pd.DataFrame:
    content = log_files.rows(log)
    columns: dict[str, Any] = {"episode": content["episode"], "time": content["time"]}
    for name in ("velocity", "action"):
        short = {"velocity": "vel", "action": "cmd"}[name]
        for joint in range(3):
            columns[f"{joint}_{short}"] = content[name][:, joint]
    columns["remark"] = "ok"
    return pd.DataFrame(columns)


def by_episode(log: Log) -> list[dict]:
    return [
        {"qvel": velocity, "action": action, "infos": {"camera": ["a", "b"]}}
        for velocity, action in log_files.episodes(log)
    ]


def cubes(log: Log) -> tuple[np.ndarray, np.ndarray]:
    parts = log_files.episodes(log)
    return np.stack([v for v, _ in parts]), np.stack([a for _, a in parts])


FORMS = {
    "frame": frame,
    "frame of another index": lambda log: frame(log).set_index("time", drop=False),
    "arrays": log_files.rows,
    "cubes": lambda log: dict(zip(("dq", "ctrl"), cubes(log), strict=True)),
    "episodes": by_episode,
    "pair of cubes": cubes,
    "pair of lists": lambda log: tuple(map(list, cubes(log))),
    "lists by name": lambda log: dict(
        zip(("v", "a"), map(list, cubes(log)), strict=True)
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_log(name: str, small_log: Log) -> None:
    found = from_data(FORMS[name](small_log), name="my robot")
    np.testing.assert_array_equal(found.velocity, small_log.velocity)
    np.testing.assert_array_equal(found.action, small_log.action)
    np.testing.assert_array_equal(found.n_transitions, small_log.n_transitions)
    assert found.source == "my robot" and found.format == "data"
    assert decide(found).change_points == (12,)


def test_rows_are_cut_into_episodes(small_log: Log) -> None:
    content = log_files.rows(small_log)
    pair = content["velocity"], content["action"]
    found = from_data(pair, Columns(episode_steps=41))
    np.testing.assert_array_equal(found.action, small_log.action)
    with pytest.raises(FallowError, match=r"my robot does not say where .*--episode"):
        from_data(pair, name="my robot")


def test_columns_are_chosen_as_in_a_file(small_log: Log) -> None:
    columns = Columns(velocity="2_vel,0_vel", action="2_cmd,0_cmd", time="time")
    found = from_data(frame(small_log), columns)
    np.testing.assert_array_equal(found.velocity, small_log.velocity[:, [2, 0]])
    assert found.actuators == ("2_cmd", "0_cmd")
    assert found.control_step_s == pytest.approx(log_files.STEP_S)


def test_positions_and_regimes(small_log: Log) -> None:
    data = log_files.rows(small_log)
    data["qpos"] = np.concatenate(
        [np.cumsum(v, axis=0) for v, _ in log_files.episodes(small_log)]
    )
    data["regime"] = np.repeat(small_log.regime, 41)
    del data["velocity"], data["time"]
    found = from_data(data)
    assert "positions: qpos[0:3]" in found.notes[0]
    assert "differences of positions" in found.notes[1]
    assert "by the step" in found.notes[1]
    np.testing.assert_array_equal(found.regime, small_log.regime)
    inner = np.delete(small_log.velocity, np.arange(0, 984, 41), axis=0)
    np.testing.assert_allclose(found.velocity, inner, atol=1e-9)
    first = np.delete(small_log.action, np.arange(0, 960, 40), axis=0)
    np.testing.assert_array_equal(found.action, first)


def test_wrapped_angles_do_not_jump() -> None:
    angle = np.linspace(0, 20, 400)[:, None]
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    action = np.random.default_rng(0).normal(size=(400, 1))
    columns = Columns(position="q", action="a", episode_steps=20)
    data = {"q": wrapped, "a": action, "dt": 0.1}
    velocity = from_data(data, columns).velocity
    np.testing.assert_allclose(velocity, (angle[1, 0] - angle[0, 0]) / 0.1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, "is of type int; give a DataFrame"),
        ([], "holds no episode"),
        ({}, "no array with rows"),
        (pd.DataFrame({"v": [], "action": [], "episode": []}), "has no rows"),
        ([{"a": 1}], "no array of numbers is in every episode"),
        ({"velocity": "fast", "action": np.ones(3)}, "no array|does not say where"),
        (([[1.0], [1.0, 2.0]], [[1.0]]), "rows must be equally long|different"),
        (([np.ones((3, 1))] * 2, [np.ones((3, 1))] * 3), "2 of 'velocity', 3 of"),
        (pd.DataFrame({"v": ["a"], "action": [1], "episode": [0]}), "hold .* numbers"),
        ({"velocity": np.ones((4, 1), complex), "action": np.ones((4, 1))}, "episode"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(data: Any, message: str) -> None:
    with pytest.raises(FallowError, match=message) as caught:
        from_data(data, name="my robot")
    assert str(caught.value).startswith("my robot") and "\n" not in str(caught.value)


def test_not_a_number_is_never_let_through(small_log: Log) -> None:
    for name in ("0_vel", "1_cmd"):
        data = frame(small_log)
        data.loc[100, name] = np.nan
        with pytest.raises(FallowError, match="is nan in episode 2"):
            from_data(data)


@pytest.mark.parametrize(
    "choice",
    [
        {"episode_steps": "200"},
        {"episode_steps": 200.0},
        {"lag_ms": "5"},
        {"episode": "episode", "episode_steps": 20},
    ],
)
def test_choices_are_checked_before_anything_is_read(choice: dict) -> None:
    with pytest.raises(FallowError, match=r"must be a|not both"):
        Columns(**choice)


def test_pandas_is_never_imported_by_us() -> None:
    code = "import sys, fallow.logs; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
