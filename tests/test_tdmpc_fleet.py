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


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """Fleets of one size share their programs."""
    folder = tmp_path_factory.mktemp("programs")
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [getattr(jax.config, name) for name in names]
    for name, value in zip(names, (str(folder), 0.0), strict=True):
        jax.config.update(name, value)
    yield
    for name, value in zip(names, before, strict=True):
        jax.config.update(name, value)


@pytest.fixture(scope="module")
def both(compiled_once, tmp_path_factory) -> tuple[Fleet, str]:
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
    for a, b in zip(fleet.state, alone.state, strict=True):
        np.testing.assert_array_equal(np.asarray(a[1]), np.asarray(b[0]))


def test_a_fleet_goes_on_as_if_never_stopped(both) -> None:
    fleet, where = both
    again = fleet_of(ONE, OTHER)
    saving.load(again, where)
    assert again.n_steps == 506
    lived(again)
    for a, b in zip(fleet.state, again.state, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    np.testing.assert_array_equal(fleet.carry, again.carry)
