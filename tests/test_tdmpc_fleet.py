"""TD-MPC2 in a fleet: company changes nothing, a killed run goes on."""

import jax
import numpy as np
import pytest

from fallow.agents import saving
from fallow.agents.fleet import Fleet
from fallow.agents.tdmpc.agent import TdMpc
from fallow.agents.tdmpc.config import Config
from fallow.records import Branch

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


def fleet_of(*branches: Branch) -> Fleet:
    agent = TdMpc("micro", MICRO, 3, 1)
    return Fleet("pendulum-swingup", agent, branches, capacity_transitions=4000)


def lived(fleet: Fleet, n_steps: int = STEPS) -> Fleet:
    while fleet.n_steps < n_steps:
        fleet.step()
    return fleet


def assert_equal(one: Fleet, at: int, other: Fleet, at_other: int) -> None:
    """A branch of one fleet is, to the bit, a branch of another."""
    for shards, others in ((one.state, other.state), (one.carry, other.carry)):
        own = jax.tree.leaves(one.programs.branch(shards, at))
        its = jax.tree.leaves(other.programs.branch(others, at_other))
        for a, b in zip(own, its, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[Fleet, str]:
    """Two branches, and where they were saved on their way."""
    where = tmp_path_factory.mktemp("saved") / "checkpoint"
    fleet = lived(fleet_of(ONE, OTHER), 506)
    saving.save(fleet, where)
    return lived(fleet), where


def test_it_learns_from_finished_episodes_only(both) -> None:
    """All that was drawn lies in the 501 rows of the first episode."""
    fleet, _ = both
    assert fleet.n_updates == 3 + STEPS - 500
    book = fleet.buffer.books[0]
    fleet.buffer.drawers[0].record.count(book)
    drawn = np.flatnonzero(book.visits)
    assert len(drawn) and (book.chunk[drawn] * 64 < 501).all()
    batch = fleet.buffer.draw(20, 4, 4, within_episodes=True)
    rows = batch.rows[:, 0]
    assert rows.max() <= 500 and (np.diff(rows) == 1).all()


def test_a_branch_does_not_depend_on_its_company(both) -> None:
    fleet, _ = both
    alone = lived(fleet_of(OTHER))
    assert_equal(fleet, 1, alone, 0)


def test_a_fleet_goes_on_as_if_never_stopped(both) -> None:
    fleet, where = both
    again = fleet_of(ONE, OTHER)
    saving.load(again, where)
    assert again.n_steps == 506
    lived(again)
    for branch in range(2):
        assert_equal(fleet, branch, again, branch)
