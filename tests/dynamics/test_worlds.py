"""Properties of the worlds on every task under every condition."""

import numpy as np
import pytest
from conftest import EARLY_CONDITIONS, assert_same, roll

from fallow.core import seeds
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.dynamics import EPISODE_FRAMES, TASKS, PhysicsError, Worlds

SEEDS = [[11, 12], [21, 22]]
N_STEPS = EPISODE_FRAMES // 2 + 10  # past the end of an episode
QUICK = {"none", "recurring"}
every_task = pytest.mark.parametrize("task", TASKS)
SAME_BODY = {"walker-stand", "walker-run"}
"""The body of walker-walk, with another reward: only two conditions are quick."""
EVERY_LAW = [
    pytest.param(
        *(task, condition),
        marks=[pytest.mark.slow] * (task in SAME_BODY and name not in QUICK),
    )
    for task in TASKS
    for name, condition in EARLY_CONDITIONS.items()
]


def fresh() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize(("task", "condition"), EVERY_LAW)
def test_laws(task: str, condition: str) -> None:
    """Deterministic, finite, in bounds; threads, company, restarts change nothing."""
    worlds = Worlds(task, condition, SEEDS, n_threads=2)
    streams = fresh().spawn(2)  # as `roll` does
    shape = (N_STEPS, 2, worlds.n_actuators)
    actions = np.stack([s.uniform(-1, 1, shape) for s in streams], axis=1)
    steps = [worlds.step(action) for action in actions[:200]]
    saved = {name: values.copy() for name, values in worlds.save().items()}
    steps += [worlds.step(action) for action in actions[200:]]

    for step in steps:
        assert np.isfinite(step.observation).all() and np.isfinite(step.reward).all()
        assert (step.reward >= 0).all() and (step.reward <= 2).all()

    alone = Worlds(task, condition, SEEDS[:1], n_threads=1)
    assert_same(steps, roll(alone, N_STEPS, fresh()), agents=[0])

    other_seeds = [[1, 2], [3, 4]]
    schedule_seeds = [11, 21]  # a drift is sampled from the first world's seed
    resumed = Worlds(task, condition, other_seeds, schedule_seeds, n_threads=1)
    resumed.restore(saved)
    np.testing.assert_array_equal(resumed.observation, saved["observation"])
    assert_same(steps[200:], [resumed.step(action) for action in actions[200:]])


@every_task
@pytest.mark.parametrize("name", ["gain", "damage", "recurring", "damping"])
def test_the_change_is_felt(task: str, name: str) -> None:
    """A condition that did nothing would pass every other property."""
    if (task, name) in {("cartpole-swingup", "damping")}:
        pytest.skip("the cart's own damping is 5e-4, and 100 times that is little")
    changed = Worlds(task, EARLY_CONDITIONS[name], SEEDS)
    unchanged = Worlds(task, "none", SEEDS)
    steps, others = roll(changed, 300, fresh()), roll(unchanged, 300, fresh())
    first = 404 // changed.frames_per_step  # by then every one of them has begun
    assert_same(
        [
            s._replace(regime=o.regime)
            for s, o in zip(steps[:100], others, strict=False)
        ],
        others[:100],
    )
    gap = abs(steps[-1].observation - others[-1].observation).max()
    assert first == 101 and gap > 1e-3


def test_friction_is_felt_where_there_are_contacts() -> None:
    condition = "friction:schedule=permanent,level=0.01,shift_frame=0"
    for task in ("walker-walk", "cheetah-run", "hopper-hop"):
        icy, dry = Worlds(task, condition, SEEDS), Worlds(task, "none", SEEDS)
        last, other = roll(icy, 300, fresh())[-1], roll(dry, 300, fresh())[-1]
        assert abs(last.observation - other.observation).max() > 1e-3, task


def test_episodes_end_by_time_alone_and_the_next_begins_at_once() -> None:
    worlds = Worlds("pendulum-swingup", seeds=[[1, 2]])
    steps = roll(worlds, 1000, fresh())
    ends = [index for index, step in enumerate(steps) if step.truncated.any()]
    assert ends == [499, 999] and steps[499].truncated.all()
    # `step` shows where the last action led, `observation` the next episode's start
    assert not np.array_equal(steps[999].observation, worlds.observation)
    assert (worlds.observation[..., 2] == 0).all()  # a pendulum starts at rest


def test_the_clock_counts_the_frames_of_all_worlds_of_an_agent() -> None:
    worlds = Worlds("pendulum-swingup", "gain:shift_frame=80", [[1, 2, 3, 4]] * 2)
    assert worlds.frames_per_step == 8
    regimes = [step.regime.tolist() for step in roll(worlds, 12, fresh())]
    assert regimes == [[0, 0]] * 10 + [[1, 1]] * 2
    worlds.reset()
    assert worlds.clock_frames.tolist() == [96, 96]


def test_agents_have_their_own_conditions() -> None:
    conditions = ["none", "gain:shift_frame=0", "friction", "recurring:shift_frame=4"]
    worlds = Worlds("walker-walk", conditions, [[5]] * 4)
    steps = roll(worlds, 3, fresh())
    assert steps[0].regime.tolist() == [0, 1, NO_REGIME, 0]
    assert steps[2].regime.tolist() == [0, 1, NO_REGIME, 1]


def test_a_mid_transition_switch_waits_for_the_next_transition() -> None:
    worlds = Worlds("pendulum-swingup", "gain:shift_frame=3", [[1]])
    steps = roll(worlds, 4, fresh())
    assert [int(step.frame[0]) for step in steps] == [0, 2, 4, 6]
    assert [int(step.regime[0]) for step in steps] == [0, 0, 1, 1]


def test_evaluation_stands_still_at_the_training_frame() -> None:
    """A stopped clock holds the dynamics of the frame it was put to."""
    train = Worlds("walker-walk", "recurring:shift_frame=8,period_frames=8", [[1, 2]])
    roll(train, 3, fresh())
    evaluation = Worlds(
        "walker-walk",
        train.conditions,
        seeds.of_worlds([0], 10, "evaluation"),
        frames_per_step=0,
    )
    evaluation.set_clock(train.clock_frames)
    before = train.save()
    steps = roll(evaluation, EPISODE_FRAMES // 2, fresh())
    assert {int(step.regime[0]) for step in steps} == {1}
    assert evaluation.clock_frames.tolist() == train.clock_frames.tolist() == [12]
    assert (evaluation.snapshot()[0].actuator_gainprm[:, 0] == 0.5).all()
    for name, array in train.save().items():
        np.testing.assert_array_equal(array, before[name])


def test_settling_happens_under_the_dynamics_in_force() -> None:
    """A cheetah that settles with stiff joints starts elsewhere."""
    stiff = "damping:schedule=permanent,level=10,shift_frame=0"
    start = Worlds("cheetah-run", stiff, 3).observation
    assert not np.allclose(start, Worlds("cheetah-run", "none", 3).observation)


def test_the_commanded_action_may_leave_the_bounds_and_is_clipped_by_the_body() -> None:
    action = np.full((1, 1, 6), 1.5)
    wild = Worlds("walker-walk", seeds=1).step(action)
    clipped = Worlds("walker-walk", seeds=1).step(np.clip(action, -1, 1))
    np.testing.assert_array_equal(wild.observation, clipped.observation)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros((1, 6)), r"shape \(1, 6\) and must have \(1, 1, 6\)"),
        (np.zeros((1, 1, 5)), "must have"),
        ("left", "actions are left; give an array of numbers"),
        (np.full((1, 1, 6), np.nan), "agent 0, world 0, actuator 0 is nan"),
        (np.array([[[0, 0, np.inf, 0, 0, 0]]]), "actuator 2 is inf"),
    ],
)
def test_bad_actions_leave_the_worlds_as_they_were(actions, message: str) -> None:
    worlds, twin = Worlds("walker-walk", seeds=1), Worlds("walker-walk", seeds=1)
    with pytest.raises(FallowError, match=message):
        worlds.step(actions)
    for name, array in worlds.save().items():
        np.testing.assert_array_equal(array, twin.save()[name])
    assert_same(roll(worlds, 5, fresh()), roll(twin, 5, fresh()))


def test_a_world_that_diverges_is_named_and_nothing_moves(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo may leave its own log file
    worlds = Worlds("walker-walk", seeds=[[1, 2]])
    state = worlds.start_state[0, 1]
    state[1:20] = 1e12
    worlds.set_state(0, 1, state)
    before = worlds.save()
    with pytest.raises(PhysicsError, match="agent 0, world 1 diverged"):
        for _ in range(10):
            worlds.step(np.zeros((1, 2, 6)))
    after = worlds.save()
    assert (after["clock_frames"] == before["clock_frames"]).all()
    np.testing.assert_array_equal(after["state"], before["state"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": [1, 2]}, r"shape \(2,\)"),
        ({"seeds": [[0.5]]}, "whole numbers"),
        ({"seeds": -1}, "seed of -1"),
        ({"seeds": [[]]}, "shape"),
        ({"seeds": [[0, 1], [2]]}, "needs the same number of worlds"),
        ({"action_repeat": 0}, "action_repeat is 0"),
        ({"action_repeat": 3}, "action_repeat is 3"),
        ({"conditions": ["none", "gain"]}, "2 conditions for 1 agents"),
        ({"schedule_seeds": [1, 2]}, "2 schedule seeds for 1 agents"),
        ({"conditions": None}, "a condition is None; write its name"),
        ({"conditions": "damage:actuator=9"}, "actuator is 9"),
        ({"frames_per_step": -1}, "frames_per_step is -1"),
        ({"n_threads": -1}, "n_threads is -1"),
    ],
)
def test_impossible_worlds_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(FallowError, match="unknown task 'None'"):
        Worlds(None)
    with pytest.raises(FallowError, match=message):
        Worlds("walker-walk", **arguments)


def test_restoring_into_other_worlds_is_refused() -> None:
    saved = Worlds("walker-walk", seeds=[[1, 2]]).save()
    worlds = Worlds("walker-walk", seeds=[[1]])
    with pytest.raises(FallowError, match="'state' is"):
        worlds.restore(saved)
    del saved["state"]
    with pytest.raises(FallowError, match="'state' is nothing"):
        Worlds("walker-walk", seeds=[[1, 2]]).restore(saved)


def test_a_clock_before_zero_is_refused() -> None:
    with pytest.raises(FallowError, match="clock of -1"):
        Worlds("pendulum-swingup").set_clock(-1)


def test_seeds_by_purpose_never_meet() -> None:
    train = seeds.of_worlds(list(range(50)), 4, "train")
    evaluation = seeds.of_worlds(list(range(50)), 10, "evaluation")
    assert train.shape == (50, 4) and evaluation.shape == (50, 10)
    assert not set(train.flat) & set(evaluation.flat)
    assert seeds.derive(1, "train", 2) == seeds.derive(1, "train", 2) == 1749807718


@pytest.mark.parametrize(("agent", "world"), [(2, 0), (0, 3), (-1, 0), (0, -1)])
def test_a_world_that_is_not_there_is_named(agent: int, world: int) -> None:
    """Counting on into the next agent's worlds would change another agent."""
    worlds = Worlds("cartpole-swingup", seeds=[[0, 1, 2], [3, 4, 5]], n_threads=1)
    before, words = (
        worlds.observation,
        f"no world {world} of agent {agent}; there are 2",
    )
    pose = np.zeros(2)
    for call in (
        lambda: worlds.place(agent, world, pose),
        lambda: worlds.set_state(agent, world, worlds.start_state[0, 0]),
        lambda: worlds.snapshot(agent, world),
    ):
        with pytest.raises(FallowError, match=words):
            call()
    np.testing.assert_array_equal(worlds.observation, before)
