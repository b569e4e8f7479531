"""TD-MPC2 in a fleet: company changes nothing, a killed run resumes.

A branch that has nothing to sample yet waits and catches up.
"""

import dataclasses

import jax
import numpy as np
import pytest

from fallow.agents import checkpoints
from fallow.agents.fleet import Fleet
from fallow.agents.tdmpc.agent import TdMpc
from fallow.agents.tdmpc.config import Config
from fallow.core.errors import FallowError
from fallow.core.records import Branch

MICRO = Config(
    n_latent=8,
    encoder_width=8,
    width=8,
    n_values=2,
    batch=4,
    n_iterations=2,
    n_samples=8,
    n_elites=3,
    n_proposals=2,
    prefill_transitions=500,
    pretrain_updates=3,
)
ONE, OTHER = Branch(0), Branch(1, "none", "recency:window_transitions=300")
STEPS = 512


def fleet_of(*branches: Branch, config: Config = MICRO) -> Fleet:
    agent = TdMpc("micro", config, 3, 1)
    return Fleet("pendulum-swingup", agent, branches, capacity_transitions=4000)


def trained(fleet: Fleet, n_steps: int = STEPS) -> Fleet:
    while fleet.n_steps < n_steps:
        fleet.step()
    return fleet


def assert_equal(one: Fleet, at: int, other: Fleet, at_other: int) -> None:
    """A branch of one fleet is, to the bit, a branch of another."""
    for shards, others in (
        (one.learners.state, other.learners.state),
        (one.carry, other.carry),
    ):
        leaves = jax.tree.leaves(one.programs.branch(shards, at))
        its = jax.tree.leaves(other.programs.branch(others, at_other))
        for a, b in zip(leaves, its, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[Fleet, str]:
    """Two branches, and where they were saved on their way."""
    where = tmp_path_factory.mktemp("saved") / "checkpoint"
    fleet = trained(fleet_of(ONE, OTHER), 506)
    checkpoints.save(fleet, where)
    return trained(fleet), where


def test_it_learns_from_finished_episodes_only(both) -> None:
    """All that was sampled lies in the 501 rows of the first episode."""
    fleet, _ = both
    assert fleet.learners.n_updates == 3 + STEPS - 500
    ledger = fleet.buffer.ledgers[0]
    fleet.buffer.samplers[0].record.count(ledger)
    sampled = np.flatnonzero(ledger.visits)
    assert len(sampled) and (ledger.chunk[sampled] * 64 < 501).all()
    batch = fleet.buffer.sample(20, 4, 4, within_episodes=True)
    rows = batch.rows[:, 0]
    assert rows.max() <= 500 and (np.diff(rows) == 1).all()


def test_a_branch_does_not_depend_on_its_company(both) -> None:
    fleet, _ = both
    alone = trained(fleet_of(OTHER))
    assert_equal(fleet, 1, alone, 0)


def test_a_fleet_goes_on_as_if_never_stopped(both) -> None:
    fleet, where = both
    again = fleet_of(ONE, OTHER)
    checkpoints.load(again, where)
    assert again.n_steps == 506
    trained(again)
    for branch in range(2):
        assert_equal(fleet, branch, again, branch)


# --------------------------------------------------------------------- waiting

LATE = dataclasses.replace(MICRO, prefill_transitions=990)
FORGETS = Branch(0, "gain:shift_frame=1960", "reset")
"""Its body changes at step 980, 20 steps before its second episode ends."""
KEEPS = Branch(1)


@pytest.fixture(scope="module")
def waits(tmp_path_factory) -> tuple[Fleet, list[list[int]], dict[int, str]]:
    """A branch that must wait in company: updates by step, and where it was saved."""
    folder = tmp_path_factory.mktemp("waits")
    fleet, updates, saved = fleet_of(FORGETS, KEEPS, config=LATE), [], {}
    trained(fleet, 990)
    for step in range(991, 1008):
        trained(fleet, step)
        updates.append(fleet.learners.updates.tolist())
        if step in (995, 1002):
            saved[step] = folder / str(step)
            checkpoints.save(fleet, saved[step])
    return fleet, updates, saved


def test_a_branch_waits_for_an_episode_and_catches_up(waits) -> None:
    """3 updates are due at once and 1 a step; what is owed comes 4 at a time."""
    _, updates, _ = waits
    usual = [3 + n for n in range(1, 18)]
    assert [other for _, other in updates] == usual
    assert [made for made, _ in updates] == [0] * 10 + [4, 8, 12, 16, *usual[-3:]]


def test_who_waits_does_not_depend_on_its_company(waits) -> None:
    fleet, _, _ = waits
    alone = trained(fleet_of(FORGETS, config=LATE), 1007)
    assert_equal(fleet, 0, alone, 0)
    sampled = alone.buffer.samplers[0]
    sampled.record.count(sampled.ledger)
    assert (
        sampled.ledger.chunk[np.flatnonzero(sampled.ledger.visits)].min() * 64
        >= 980 - 64
    )


@pytest.mark.parametrize("step", [995, 1002])
def test_who_waits_goes_on_as_if_never_stopped(waits, step: int) -> None:
    """Saved while it waited, and while it was catching up."""
    fleet, _, saved = waits
    again = fleet_of(FORGETS, KEEPS, config=LATE)
    checkpoints.load(again, saved[step])
    trained(again, 1007)
    assert again.learners.updates.tolist() == fleet.learners.updates.tolist()
    for branch in range(2):
        assert_equal(fleet, branch, again, branch)


@pytest.mark.slow
def test_who_waits_in_one_program_keeps_what_it_has(waits, monkeypatch) -> None:
    """As on an accelerator, where all branches are computed at once."""
    _, updates, _ = waits
    monkeypatch.setattr("fallow.agents.programs.on_processor", lambda: False)
    fleet = fleet_of(FORGETS, KEEPS, config=LATE)
    before = jax.tree.map(np.array, fleet.learners.state)
    trained(fleet, 1000)
    assert all(np.isnan(values[0]) for values in fleet.learners.metrics.values())
    changed = [  # of each branch, whether any of its leaves is not what it was
        any(not np.array_equal(a[i], b[i]) for a, b in zip(*both, strict=True))
        for both in [(before[0], fleet.learners.state[0])]
        for i in range(2)
    ]
    assert changed == [False, True]
    trained(fleet, 1002)
    assert fleet.learners.updates.tolist() == updates[11]
    fleet.learners.check_finite(fleet.frame)


def test_a_branch_that_never_can_sample_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr("fallow.agents.fleet.WAIT_EPISODES", 0)
    fleet = trained(fleet_of(Branch(0, "none", "recency:window_transitions=2")), 500)
    with pytest.raises(FallowError, match="no finished episode of 4 steps"):
        fleet.step()
