"""A fleet samples what single buffers sample, and only indices cross to the device."""

import jax
import numpy as np
import pytest

from fallow.core.errors import FallowError
from fallow.replay import Buffer, Field
from fallow.replay.device_buffer import DeviceBuffer

FIELDS = {"x": Field((3,)), "t": Field((), "int32"), "image": Field((2, 2), "uint8")}
RULES = [
    "passive",
    "recency:window_transitions=200",
    "reservoir:budget_transitions=256",
    "reservoir:unit=chunk,budget_transitions=256",
    "wmar:short_transitions=200,long_transitions=256",
    "matched",
    "reset",
]
SEEDS = [3, 3, 4, 4, 5, 6, 7]
N_WORLDS, CAPACITY = 2, 1000


def step(branch: int, t: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng([branch, t])
    return {
        "x": random.normal(size=(N_WORLDS, 3)).astype(np.float32),
        "t": np.full(N_WORLDS, t, np.int32),
        "image": random.integers(0, 255, (N_WORLDS, 2, 2)).astype(np.uint8),
    }


@pytest.fixture(scope="module")
def filled() -> tuple[DeviceBuffer, list[Buffer]]:
    fleet = DeviceBuffer(FIELDS, RULES, SEEDS, N_WORLDS, CAPACITY)
    singles = [
        Buffer(FIELDS, N_WORLDS, CAPACITY, rule, seed)
        for rule, seed in zip(RULES, SEEDS, strict=True)
    ]
    for t in range(800):
        first = np.full(N_WORLDS, t % 60 == 0)
        regime = int(t >= 500)
        steps = [step(branch, t) for branch in range(len(RULES))]
        for single, one in zip(singles, steps, strict=True):
            single.add(is_first=first, regime=regime, **one)
        stacked = {name: np.stack([one[name] for one in steps]) for name in FIELDS}
        every = np.tile(first, (len(RULES), 1))
        fleet.add(is_first=every, regimes=[regime] * len(RULES), **stacked)
    return fleet, singles


@pytest.mark.parametrize("length", [16, 64])
def test_every_branch_samples_what_its_buffer_samples(filled, length: int) -> None:
    fleet, singles = filled
    indices = fleet.sample(5, 4, length)
    assert indices.rows.shape == (5, len(RULES), 4, length)
    for update in range(5):
        batch = fleet.batch(indices, update)
        for branch, single in enumerate(singles):
            expected = single.sample(4, length)
            for name, values in expected.items():
                np.testing.assert_array_equal(np.asarray(batch[name])[branch], values)


def test_only_indices_cross_to_the_device(filled) -> None:
    fleet, _ = filled
    indices = fleet.sample(2, 4, 16)
    fleet.batch(indices)  # compiled
    rows = jax.device_put(indices.rows[1])
    is_first = jax.device_put(indices.is_first[1])
    with jax.transfer_guard("disallow"):
        batch = fleet._gather(fleet.groups, rows, is_first)
        jax.block_until_ready(batch)
        assert batch["image"].shape == (len(RULES), 4, 16, 2, 2)
        with pytest.raises(Exception, match=r"[Dd]isallow"):  # the guard is awake
            fleet._gather(fleet.groups, indices.rows[1], indices.is_first[1])


def test_a_branch_and_a_buffer_load_each_others_files(filled, tmp_path) -> None:
    """A trunk's replay can begin any number of branches, on either side."""
    fleet, singles = filled
    fleet.save(1, tmp_path / "branch")
    singles[0].save(tmp_path / "single")
    buffer = Buffer(FIELDS, N_WORLDS, CAPACITY)
    buffer.load(tmp_path / "branch")
    other = DeviceBuffer(FIELDS, ["passive"] * 2, [0, 1], N_WORLDS, CAPACITY)
    other.load(1, tmp_path / "branch")
    other.load(0, tmp_path / "single")
    assert [str(sampler.rule) for sampler in other.samplers] == RULES[:2]
    for _ in range(3):
        batch = other.batch(other.sample(1, 4, 64))
        for name, values in buffer.sample(4, 64).items():
            np.testing.assert_array_equal(np.asarray(batch[name])[1], values)
        for name, values in singles[0].sample(4, 64).items():
            np.testing.assert_array_equal(np.asarray(batch[name])[0], values)


def test_a_sweep_scores_every_finished_chunk_of_every_branch() -> None:
    fleet = DeviceBuffer(
        {"t": Field((), "int32")}, ["graded", "passive"], [0, 1], 1, 900
    )
    for t in range(400):
        first = np.full((2, 1), t % 50 == 0)
        fleet.add(is_first=first, t=np.full((2, 1), t, np.int32))
    for tickets, indices in fleet.sweep(4):
        starts = np.asarray(fleet.batch(indices)["t"])[..., 0]  # (R, n)
        assert fleet.set_errors(tickets, 1.0 + starts / 64) == 0
    ledger = fleet.ledgers[0]
    slots = ledger.slots(finished=True)
    assert len(slots) == 6
    np.testing.assert_array_equal(ledger.error[slots], 1.0 + np.arange(6))
    fleet.note_change(1)
    assert fleet.ledgers[1].changes == [400] and fleet.ledgers[0].changes == []


def test_bad_steps_are_refused_and_nothing_moves() -> None:
    fleet = DeviceBuffer({"x": Field((3,))}, ["passive"], [0], 1, 500)
    first = np.ones((1, 1), bool)
    for x, message in [
        (np.zeros((1, 1, 2), np.float32), "stores float32 of shape"),
        (np.zeros((1, 1, 3)), "x is float64"),
        (np.full((1, 1, 3), np.nan, np.float32), "NaN"),
    ]:
        with pytest.raises(FallowError, match=message):
            fleet.add(is_first=first, x=x)
    with pytest.raises(FallowError, match="this buffer stores x"):
        fleet.add(is_first=first, y=np.zeros((1, 1, 3), np.float32))
    assert fleet.ledgers[0].now == 0
    with pytest.raises(FallowError, match="2 rules and 1 seeds"):
        DeviceBuffer({"x": Field((3,))}, ["passive", "recency"], [0])
