"""Replay for a fleet: what sampling on the host and gathering on the device cost.

    python benchmarks/replay_fleet.py --branches 40 --updates 8

Every branch holds 100k transitions of 24 + 6 floats and samples 16 sequences of 64 an
update, by eight rules in turn. Times are medians over rounds; gathering is timed with
the indices on their way to the device, as in training.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import jax
import numpy as np
from replay import BATCH, FIELDS, LENGTH  # the benchmark beside this one

from fallow.replay import Buffer
from fallow.replay.device_buffer import DeviceBuffer

RULES = (
    "passive",
    "recency",
    "reservoir:unit=chunk",
    "reset:change_step=50000",
    "graded",
    "curious",
    "wmar:long_transitions=50000",
    "matched",
)
CAPACITY = 100_000


def filled(n_branches: int, folder: str) -> DeviceBuffer:
    """A fleet whose branches all begin from one trunk's file."""
    trunk = Buffer(FIELDS, capacity_transitions=CAPACITY)
    random = np.random.default_rng(0)
    for episode in range(CAPACITY // 500):
        trunk.add_episode(
            regime=int(episode >= 100),
            observation=random.normal(size=(500, 24)).astype(np.float32),
            action=random.uniform(-1, 1, (500, 6)).astype(np.float32),
            reward=random.random(500).astype(np.float32),
            is_terminal=np.zeros(500, bool),
        )
    path = f"{folder}/trunk"
    trunk.save(path)
    rules = [RULES[branch % len(RULES)] for branch in range(n_branches)]
    fleet = DeviceBuffer(
        FIELDS, rules, list(range(n_branches)), capacity_transitions=CAPACITY
    )
    for branch, rule in enumerate(rules):
        fleet.load(branch, path)
        fleet.samplers[branch].set_rule(rule)
    return fleet


def median_s(work: Callable[[], object], n_rounds: int = 15) -> float:
    """Median seconds of a piece of work, after one to warm up."""
    times = []
    for _ in range(n_rounds + 1):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--branches", type=int, default=8)
    parser.add_argument("--updates", type=int, default=8, help="sampled at once")
    arguments = parser.parse_args()
    n_branches, n_updates = arguments.branches, arguments.updates
    with tempfile.TemporaryDirectory() as folder:
        fleet = filled(n_branches, folder)
    n = n_branches * n_updates
    sample_s = median_s(lambda: fleet.sample(n_updates, BATCH, LENGTH).rows)
    indices = fleet.sample(n_updates, BATCH, LENGTH)
    gather_s = median_s(lambda: [fleet.batch(indices, k) for k in range(n_updates)])
    shape = (n_branches, 1)
    step = {
        name: np.zeros(shape + field.shape, field.dtype)
        for name, field in FIELDS.items()
    }

    def add() -> object:
        fleet.add(is_first=np.zeros(shape, bool), **step)
        return fleet.groups

    add_s = median_s(add)
    print(f"{jax.devices()[0].device_kind}, {n_branches} branches, {n_updates} updates")
    print(f"sample    {sample_s / n * 1e6:8.1f} us a branch and update, on the host")
    print(f"gather  {gather_s / n * 1e6:8.1f} us a branch and update, on the device")
    print(f"add     {add_s / n_branches * 1e6:8.1f} us a branch and step")
    print(f"so at most {n / (sample_s + gather_s):,.0f} updates/s of all branches")


if __name__ == "__main__":
    main()
