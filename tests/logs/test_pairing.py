"""Commands are paired with the motion that they cause, wherever they are logged."""

import json
from pathlib import Path

import log_files
import numpy as np
import pytest
import ros_files
from mcap.writer import Writer

from fallow.core.errors import FallowError
from fallow.diagnosis import decide
from fallow.logs import Columns, read_log
from fallow.logs.commands import Commands
from fallow.logs.lag import find_lag
from fallow.logs.log import Log
from fallow.logs.simulate import simulate
from fallow.logs.streams import Stream

STEP_S = log_files.STEP_S


def write_mcap(log: Log, path: Path, late_s: float, jitter_s: float = 0.0) -> Path:
    """JSON; commands `late_s` after the states they were computed from."""
    random = np.random.default_rng(0)
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("joints", "jsonschema", b"{}")
        channels = {
            topic: writer.register_channel(topic, "json", schema)
            for topic in ("/state", "/command")
        }
        for time_s, velocity, action in log_files.stream(log):
            at_s = time_s + late_s + random.normal(0, jitter_s)
            for topic, key, value, moment in (
                ("/state", "velocity", velocity, time_s),
                ("/command", "data", action, at_s),
            ):
                data = json.dumps({key: value.tolist()}).encode()
                writer.add_message(channels[topic], round(moment * 1e9), data, 0)
        writer.finish()
    return path


WRITERS = {
    "mcap": lambda log, path, late_s: write_mcap(log, path, late_s),
    "ros1": lambda log, path, late_s: ros_files.write_bag(
        log, path, list(ros_files.events(log, late_s=late_s))
    ),
    "ros2": lambda log, path, late_s: ros_files.write_ros2(
        log, path, list(ros_files.events(log, late_s=late_s))
    ),
}


@pytest.mark.parametrize("late_ms", [-25, -9, -1, 0, 2, 9, 15, 19])
@pytest.mark.parametrize("name", WRITERS)
def test_one_verdict_wherever_the_command_is_logged(
    name: str, late_ms: float, small_log: Log, tmp_path: Path
) -> None:
    """Before this state, after it, or even before the state before it."""
    path = tmp_path / "run.bag"
    WRITERS[name](small_log, path, late_ms / 1e3)
    found = read_log(path)
    decision, expected = decide(found), decide(small_log)
    np.testing.assert_allclose(
        np.median(decision.response.mean), np.median(expected.response.mean), rtol=0.01
    )
    assert decision.change_points == expected.change_points == (12,)
    assert decision.discard
    assert decision.magnitude.value == pytest.approx(expected.magnitude.value, rel=0.01)
    word = "precede" if late_ms <= 0 else "follow"
    assert f"commands {word} states by about {abs(late_ms)} ms" in found.notes


def test_jitter_of_the_logger_changes_nothing(small_log: Log, tmp_path: Path) -> None:
    found = read_log(write_mcap(small_log, tmp_path / "a.mcap", 0.0, jitter_s=0.002))
    np.testing.assert_array_equal(found.action, small_log.action)


def test_the_lag_can_be_given(small_log: Log, tmp_path: Path) -> None:
    path = write_mcap(small_log, tmp_path / "a.mcap", -0.025)
    right = read_log(path, Columns(lag_ms=25))
    np.testing.assert_allclose(right.action, small_log.action, atol=1e-9)
    wrong = read_log(path, Columns(lag_ms=0))
    assert abs(np.median(decide(wrong).response.mean)) < 0.2
    with pytest.raises(FallowError, match="--lag-ms is nan"):
        Columns(lag_ms=float("nan"))


def robot(
    state_hz: float,
    command_hz: float,
    lag_s: float,
    late_s: float,
    feedback: float,
    drag: float = 2.0,
) -> tuple[Commands, np.ndarray, np.ndarray, float]:
    """A joint, simulated at 1 kHz, that obeys commands `lag_s` after they are sent.

    Returns the commands as logged, `late_s` late, the times and the velocities of the
    states, and the change of velocity that a unit of command brings in one step.
    """
    random, dt, gain = np.random.default_rng(0), 1e-3, 20.0
    n, every = 60_000, round(1e3 / command_hz)
    wanted = random.uniform(-1, 1, n // every + 1)
    sent, velocity = np.zeros(len(wanted)), np.zeros(n + 1)
    noise = random.normal(0, 0.5 * dt**0.5, n)
    for i in range(n):
        if i % every == 0:
            sent[i // every] = wanted[i // every] - feedback * velocity[i]
        acting = (i - round(lag_s * 1e3)) // every
        force = gain * sent[acting] if acting >= 0 else 0.0
        velocity[i + 1] = velocity[i] + dt * (force - drag * velocity[i]) + noise[i]
    logged = np.arange(len(sent)) * every * dt + late_s
    stream = Stream("/command", ("joint",), logged, sent[:, None])
    rows = np.arange(300, n, round(1e3 / state_hz))
    commands = Commands(((stream, (0,), (0,)),), 1)
    return commands, rows * dt, velocity[rows], gain / state_hz


@pytest.mark.parametrize("feedback", [0.0, 0.5])
@pytest.mark.parametrize(
    ("state_hz", "command_hz", "lag_s"),
    [
        (50, 50, 0.0),
        (50, 50, 0.008),  # a drive that is slow by less than a step
        (50, 50, 0.06),  # hobby servos
        (100, 10, 0.03),  # a slow policy
        (50, 500, 0.0),  # a fast one
        (50, 500, 0.013),
        (500, 50, 0.013),
    ],
)
def test_the_lag_of_a_robot_is_found(
    state_hz: float, command_hz: float, lag_s: float, feedback: float
) -> None:
    responses, lags = [], []
    for late_s in (-0.001, 0.002):
        commands, time_s, velocity, expected = robot(
            state_hz, command_hz, lag_s, late_s, feedback
        )
        change = np.diff(velocity)[:, None]
        intervals = commands, time_s[:-1], time_s[1:], change
        method, found_s, _ = find_lag([intervals], None)
        action = getattr(commands, method)(time_s[:-1] - found_s, time_s[1:] - found_s)
        responses.append(float((action * change).sum() / (action**2).sum() / expected))
        lags.append(found_s + late_s)
    assert responses[0] == pytest.approx(responses[1], rel=0.01)
    assert responses[0] == pytest.approx(1.0, abs=0.15)  # drag takes some
    if lag_s:  # any lag within a step is the same for held commands
        assert lags == pytest.approx([lag_s] * 2, abs=max(0.005, 0.5 / state_hz))


@pytest.mark.parametrize("lag_s", [0.0, 0.04])
@pytest.mark.parametrize("late_s", [-0.001, 0.002, 0.019])
def test_the_rebound_of_a_light_joint_is_not_its_answer(
    lag_s: float, late_s: float
) -> None:
    """With much drag a step gives back what the one before it gained."""
    commands, time_s, velocity, _ = robot(50, 50, lag_s, late_s, 0.0, drag=200.0)
    change = np.diff(velocity)[:, None]
    found = find_lag([(commands, time_s[:-1], time_s[1:], change)], None)
    action = commands.held(time_s[:-1] - found[1], time_s[1:] - found[1])
    assert found[0] == "held" and (action * change).sum() > 0
    sent_s = commands.since((time_s[:-1] + time_s[1:]) / 2 - found[1])[0] - late_s
    np.testing.assert_allclose(time_s[:-1] - sent_s, lag_s, atol=1e-9)


@pytest.mark.parametrize("task", ["walker-walk", "cheetah-run"])
def test_a_simulated_body_as_a_recording(task: str, tmp_path: Path) -> None:
    """Real contacts and drag; commands logged before or after the states."""
    simulate(task, "none", 4, 0, tmp_path / "a.fallow")
    history = read_log(tmp_path / "a.fallow")
    for late_s in (-0.001, 0.002, 0.019):
        path = tmp_path / f"{late_s}.bag"
        ros_files.write_bag(
            history, path, list(ros_files.events(history, late_s=late_s))
        )
        found = read_log(path)
        np.testing.assert_allclose(found.action, history.action, rtol=1e-6)
        np.testing.assert_allclose(found.velocity, history.velocity, rtol=1e-6)


def test_the_mean_command_is_weighted_by_time() -> None:
    stream = Stream(
        "/c", ("a",), np.array([0.0, 1.0, 3.0]), np.array([[2.0], [4], [0]])
    )
    commands = Commands(((stream, (0,), (0,)),), 1)
    start, stop = np.array([-1.0, 0.5, 1, 2.5]), np.array([0.5, 1.5, 3, 4.5])
    mean = commands.mean(start, stop).ravel()
    np.testing.assert_allclose(mean, [np.nan, 3.0, 4.0, 1.0])
    held = commands.held(start, stop).ravel()
    np.testing.assert_allclose(held, [np.nan, 4.0, 4.0, 0.0])


def test_states_without_commands_are_left_out(small_log: Log, tmp_path: Path) -> None:
    """Those before the first command, and pieces too short to say anything."""
    late = [
        e for e in ros_files.events(small_log) if e[0] > 10.4 or e[1][1:6] == "joint"
    ]
    late = [e for e in late if e[1] == "/joint_states" or e[0] > 10.4]
    late.append((1.0, "/joint_states", ros_files.STATE, {"velocity": np.zeros(3)}))
    ros_files.write_bag(small_log, tmp_path / "a.bag", late)
    found = read_log(tmp_path / "a.bag")
    assert found.n_transitions.tolist() == [19, *[40] * 23]
    np.testing.assert_array_equal(found.action, small_log.action[21:])
