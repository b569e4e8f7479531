"""Fleets: company changes nothing, a killed run resumes, bad input is an error."""

import dataclasses
import shutil
from functools import partial

import jax
import numpy as np
import pytest
from small_dreamer import MICRO

from fallow.agents import AGENTS, checkpoints, memory
from fallow.agents.dreamer.agent import Dreamer
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.learners import LearningError
from fallow.core import arrayfile
from fallow.core.errors import FallowError
from fallow.core.records import Branch
from fallow.logs import read_history

TASK = "pendulum-swingup"
STEPS = 100  # 70 of random actions, then learning


def agent() -> Dreamer:
    return Dreamer("micro", MICRO, 3, 1)


def fleet_of(*branches: Branch, **options) -> Fleet:
    return Fleet(TASK, agent(), branches, capacity_transitions=4000, **options)


def trained(fleet: Fleet, n_steps: int = STEPS) -> Fleet:
    while fleet.n_steps < n_steps:
        fleet.step()
    return fleet


def branch_of(fleet: Fleet, index: int) -> list[np.ndarray]:
    return [np.asarray(x) for x in fleet.programs.branch(fleet.learners.state, index)]


def assert_equal_states(one: Fleet, at: int, other: Fleet, at_other: int) -> None:
    for a, b in zip(branch_of(one, at), branch_of(other, at_other), strict=True):
        np.testing.assert_array_equal(a, b)


def assert_equal(one: Fleet, at: int, other: Fleet, at_other: int) -> None:
    """A branch of one fleet is, to the bit, a branch of another."""
    assert one.learners.n_updates == other.learners.n_updates > 0
    assert_equal_states(one, at, other, at_other)
    for name, values in other.worlds.save().items():
        mine = one.worlds.save()[name][at]
        np.testing.assert_array_equal(mine, values[at_other], name)


RULES = (
    "passive",
    "recency:window_transitions=80",
    "reservoir:unit=chunk,budget_transitions=128",
)


@pytest.fixture(scope="module")
def three() -> Fleet:
    return trained(fleet_of(*(Branch(seed, "none", r) for seed, r in enumerate(RULES))))


@pytest.mark.parametrize("index", range(3))
def test_a_branch_does_not_depend_on_its_company(three: Fleet, index: int) -> None:
    alone = trained(fleet_of(three.branches[index]))
    assert_equal(three, index, alone, 0)


@pytest.mark.slow
def test_mapped_updates_equal_those_of_one_branch() -> None:
    """On an accelerator all branches are updated in one batched program."""
    one_agent = agent()
    keys = jax.random.split(jax.random.key(0), 3)
    states = jax.jit(jax.vmap(one_agent.init))(keys)
    random = np.random.default_rng(0)
    batch = {
        "observation": random.normal(size=(3, 2, 8, 3)).astype(np.float32),
        "action": random.uniform(-1, 1, (3, 2, 8, 1)).astype(np.float32),
        "reward": random.random((3, 2, 8)).astype(np.float32),
        "is_first": np.tile(np.arange(8) == 0, (3, 2, 1)),
    }
    together, metrics = jax.jit(jax.vmap(one_agent.update))(states, batch, keys)
    one = jax.jit(one_agent.update)
    for index in range(3):
        part = partial(jax.tree.map, lambda x, at=index: x[at])
        state, batch_one, key = part((states, batch, keys))
        alone, alone_metrics = one(state, batch_one, key)
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(a[index], b, atol=2e-5)
        for name, value in alone_metrics.items():
            np.testing.assert_allclose(metrics[name][index], value, rtol=1e-3)


def test_free_checks() -> None:
    """A window that holds all is passive, and a gain of 1 is no change."""
    base = trained(fleet_of(Branch(5)))
    window = trained(fleet_of(Branch(5, "none", "recency:window_transitions=4000")))
    assert_equal(base, 0, window, 0)
    gain = trained(fleet_of(Branch(5, "gain:g=1.0,shift_frame=80")))
    assert_equal(base, 0, gain, 0)


def test_a_fleet_goes_on_as_if_never_stopped(three: Fleet, tmp_path) -> None:
    first = fleet_of(*three.branches)
    first.record(tmp_path / "histories")
    trained(first, 80)
    checkpoints.save(first, tmp_path / "saved")
    kept = {p.name: p.read_bytes() for p in (tmp_path / "saved").iterdir()}
    trained(first, 85)  # continues, and is killed
    first.close()
    again = fleet_of(*three.branches)
    checkpoints.load(again, tmp_path / "saved", tmp_path / "histories")
    assert again.n_steps == 80
    trained(again)
    for index in range(3):
        assert_equal(again, index, three, index)
    again.close()
    assert kept == {p.name: p.read_bytes() for p in (tmp_path / "saved").iterdir()}


@pytest.mark.slow
def test_one_branch_out_of_a_fleet_begins_others(three: Fleet, tmp_path) -> None:
    checkpoints.save(three, tmp_path / "trunk")
    place = checkpoints.CheckpointPath(tmp_path / "trunk", 1)
    branches = (
        Branch(1, "gain:shift_frame=420", "recency:window_transitions=80"),
        Branch(1, "none", "passive"),
    )
    fleet = fleet_of(*branches)
    checkpoints.begin(fleet, [place, place])
    assert fleet.frame == three.frame
    assert [str(d.rule) for d in fleet.buffer.samplers] == [b.rule for b in branches]
    for branch in range(2):
        assert_equal_states(fleet, branch, three, 1)
    trained(fleet, STEPS + 15)
    regimes = fleet.worlds.regime
    assert regimes[0] == 1 and regimes[1] == 0
    pairs = zip(branch_of(fleet, 0), branch_of(fleet, 1), strict=True)
    assert any(not np.array_equal(a, b) for a, b in pairs)


def test_a_body_that_changes_at_the_branch_point_is_noted(three, tmp_path) -> None:
    checkpoints.save(three, tmp_path / "saved")
    now = f"gain:shift_frame={three.frame}"
    later = f"gain:shift_frame={three.frame + 8}"
    fleet = fleet_of(Branch(1, now, "reset"), Branch(1, later, "reset"))
    checkpoints.begin(fleet, [checkpoints.CheckpointPath(tmp_path / "saved", 1)] * 2)
    first, second = fleet.buffer.ledgers
    assert first.changes == [first.now] and second.changes == []
    checkpoints.save(fleet, tmp_path / "again")
    resumed = fleet_of(*fleet.branches)
    checkpoints.load(resumed, tmp_path / "again")
    assert resumed.buffer.ledgers[0].changes == first.changes


def test_a_branch_that_has_not_learned_yet_can_be_saved(three, tmp_path) -> None:
    """Where others have: after a reset there is nothing to learn from at first."""
    checkpoints.save(three, tmp_path / "trunk")
    changes = f"gain:shift_frame={three.frame}"
    branches = Branch(0, "none", "passive"), Branch(0, changes, "reset")
    fleet = fleet_of(*branches)
    checkpoints.begin(fleet, [checkpoints.CheckpointPath(tmp_path / "trunk", 0)] * 2)
    fleet.step()
    before = three.learners.updates[0]
    assert fleet.learners.updates.tolist() == [
        before + 2,
        before,
    ]  # the second one waits
    fleet.learners.check_finite(fleet.frame)
    checkpoints.save(fleet, tmp_path / "saved")
    resumed = fleet_of(*branches)
    checkpoints.load(resumed, tmp_path / "saved")
    resumed.learners.check_finite(resumed.frame)


def test_histories_hold_every_episode(tmp_path) -> None:
    fleet = fleet_of(Branch(0))
    fleet.record(tmp_path)
    trained(fleet, 501)
    fleet.close()
    history = read_history(tmp_path / "000.fallow")
    assert len(history.episodes) == MICRO.n_worlds
    episode = history.episodes[0]
    assert episode.n_transitions == 500
    stored = fleet.buffer.groups["float32"][0, : 500 + 1]
    np.testing.assert_allclose(episode.observation[:64], stored[:64, :3], atol=1e-6)


def test_evaluation_touches_nothing_and_is_shared_by_seed() -> None:
    fleet = trained(fleet_of(Branch(3), Branch(3, "none", RULES[1]), Branch(4)), 72)
    before = branch_of(fleet, 0)
    worlds, clock = fleet.worlds.save(), fleet.frame
    stored = [ledger.now for ledger in fleet.buffer.ledgers]
    returns = fleet.evaluate(n_episodes=2)
    assert returns.shape == (3, 2) and (returns >= 0).all()
    np.testing.assert_array_equal(returns, fleet.evaluate(n_episodes=2))
    starts = fleet._evaluation_worlds.start_state
    np.testing.assert_array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[0], starts[2])
    assert fleet.frame == clock
    assert stored == [ledger.now for ledger in fleet.buffer.ledgers]
    for a, b in zip(before, branch_of(fleet, 0), strict=True):
        np.testing.assert_array_equal(a, b)
    for name, values in fleet.worlds.save().items():
        np.testing.assert_array_equal(values, worlds[name])


def test_graded_gets_its_errors_from_the_model(monkeypatch) -> None:
    monkeypatch.setattr("fallow.agents.fleet.SWEEP_STEPS", 35)
    fleet = trained(fleet_of(Branch(0, "none", "graded")), 150)
    ledger = fleet.buffer.ledgers[0]
    finished = ledger.slots(finished=True)
    assert len(finished) > 0 and (ledger.error[finished] > 0).all()


def test_changes_are_noted_for_reset() -> None:
    fleet = fleet_of(Branch(0, "gain:shift_frame=80", "reset"))
    trained(fleet, 75)
    assert fleet.buffer.ledgers[0].changes == [
        21
    ]  # 20 steps of 4 frames, and the start


# -------------------------------------------------------------------- bad input


def test_numbers_that_are_none_stop_the_run(tmp_path) -> None:
    fleet = trained(fleet_of(Branch(0)), 80)
    checkpoints.save(fleet, tmp_path / "saved")
    fleet.learners.state = jax.tree.map(
        lambda x: x * np.nan if x.dtype == np.float32 else x, fleet.learners.state
    )
    fleet.learners.learn(1)
    with pytest.raises(LearningError, match=r"of branch 0 .* is nan after"):
        checkpoints.save(fleet, tmp_path / "saved")
    again = fleet_of(Branch(0))
    checkpoints.load(again, tmp_path / "saved")
    assert again.n_steps == 80


def test_a_full_disk_keeps_the_last_checkpoint(three, tmp_path, monkeypatch) -> None:
    checkpoints.save(three, tmp_path / "saved")
    write, n_written = arrayfile.save, iter(range(100))

    def fails_on_the_third(*arguments) -> None:
        if next(n_written) == 3:
            raise OSError(28, "No space left on device")
        write(*arguments)

    monkeypatch.setattr(arrayfile, "save", fails_on_the_third)
    with pytest.raises(OSError, match="No space"):
        checkpoints.save(three, tmp_path / "saved")
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]
    checkpoints.load(fleet_of(*three.branches), tmp_path / "saved")


def test_a_kill_between_two_renames_loses_nothing(three, tmp_path) -> None:
    checkpoints.save(three, tmp_path / "saved")
    shutil.move(tmp_path / "saved", tmp_path / "saved.old")
    assert checkpoints.found(tmp_path / "saved") == tmp_path / "saved.old"
    checkpoints.load(fleet_of(*three.branches), tmp_path / "saved")


def test_checkpoints_of_others_are_refused(three, tmp_path) -> None:
    checkpoints.save(three, tmp_path / "saved")
    with pytest.raises(FallowError, match="no checkpoint at"):
        checkpoints.load(fleet_of(Branch(0)), tmp_path / "nothing")
    places = [
        checkpoints.CheckpointPath(tmp_path / "saved", index) for index in range(2)
    ]
    with pytest.raises(FallowError, match="2 saved branches for 1"):
        checkpoints.begin(fleet_of(Branch(0)), places)
    with pytest.raises(FallowError, match=r"there is no branch at .*007\.agent"):
        checkpoints.begin(
            fleet_of(Branch(0)), [checkpoints.CheckpointPath(tmp_path / "saved", 7)]
        )
    larger = Dreamer("micro", dataclasses.replace(MICRO, n_deter=16), 3, 1)
    with pytest.raises(FallowError, match="saved with n_deter=8, and this fleet has"):
        checkpoints.begin(Fleet(TASK, larger, [Branch(0)], 4000), places[:1])
    quicker = Dreamer("micro", dataclasses.replace(MICRO, unroll=2), 3, 1)
    checkpoints.begin(Fleet(TASK, quicker, [Branch(0)], 4000), places[:1])
    other = Dreamer("micro", MICRO, 5, 1)
    with pytest.raises(FallowError, match="saved for task 'pendulum-swingup'"):
        fleet = Fleet("cartpole-swingup", other, [Branch(0)], 4000)
        checkpoints.begin(fleet, places[:1])


def test_bad_choices_are_named() -> None:
    with pytest.raises(FallowError, match="unknown task 'walker-fly'"):
        build_agent("walker-fly")
    with pytest.raises(FallowError, match="unknown agent 'dreamr': did you mean"):
        build_agent(TASK, "dreamr")
    with pytest.raises(FallowError, match="unknown preset of dreamer 'huge'"):
        build_agent(TASK, "dreamer", "huge")
    with pytest.raises(FallowError, match="unknown rule 'recent'"):
        fleet_of(Branch(0, "none", "recent"))
    with pytest.raises(FallowError, match="a fleet of no branches"):
        fleet_of()
    with pytest.raises(FallowError, match="built for 3 observation columns"):
        Fleet("walker-walk", agent(), [Branch(0)])


def test_a_fleet_that_does_not_fit_is_split(monkeypatch) -> None:
    one_agent, branches = agent(), [Branch(seed) for seed in range(7)]
    each = memory.branch_bytes(one_agent, 4000)
    monkeypatch.setattr(memory, "device_bytes", lambda: int(3.2 * each / memory.USABLE))
    parts = memory.fleets_that_fit(one_agent, branches, 4000)
    assert [len(part) for part in parts] == [3, 3, 1]
    assert [b for part in parts for b in part] == branches
    monkeypatch.setattr(memory, "device_bytes", lambda: each // 2)
    with pytest.raises(FallowError, match="one branch needs about"):
        memory.fleets_that_fit(one_agent, branches, 4000)


def test_every_agent_builds_for_every_preset() -> None:
    for name, kind in AGENTS.items():
        for preset in kind.presets:
            built = build_agent("walker-walk", name, preset)
            assert built.n_columns == 24 and built.update_flops() > 0
            assert memory.branch_bytes(built, 1000) > 0
