"""Replay speed beside a plain NumPy ring, interleaved in one process.

    python benchmarks/replay.py            # a table
    python benchmarks/replay.py --json     # the numbers

1M transitions of 24 + 6 floats, a reward and two flags, episodes of 1,000 steps,
batches of 16 sequences of 64. Every block of work is followed by the same block on the
plain ring; ratios are taken inside such a pair, so above 1 is faster than the ring, and
their median is reported with the range. Peers (cpprb, flashbax, TorchRL) are measured
where they are installed.
"""

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fallow.replay import Buffer, Field

N = 1_000_000
EPISODE = 1000
BATCH, LENGTH = 16, 64
SAMPLES_BETWEEN_ADDS = 16
N_ROUNDS = 15
FIELDS = {
    "observation": Field((24,)),
    "action": Field((6,)),
    "reward": Field(()),
    "is_terminal": Field((), "bool"),
}
RULES = (
    "passive",
    "recency",
    "reservoir",
    "reservoir:unit=chunk",
    "reset:change_step=500000",
    "graded",
    "curious",
    "wmar:long_transitions=500000",
    "matched",
)
Work = Callable[[], object]


class Ring:
    """The baseline: one array for each field, a head, and fancy indexing.

    It is added to as a buffer is: arrays with a leading axis of worlds, here one.
    """

    def __init__(self, capacity: int) -> None:
        self.data = {
            name: np.zeros((capacity, *field.shape), field.dtype)
            for name, field in {**FIELDS, "is_first": Field((), "bool")}.items()
        }
        self.steps = {name: values[:, None] for name, values in self.data.items()}
        self.capacity, self.head, self.size = capacity, 0, 0
        self.random = np.random.default_rng(0)

    def add(self, **step: np.ndarray) -> None:
        for name, value in step.items():
            self.steps[name][self.head] = value
        self.head = (self.head + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, batch: int, length: int) -> dict[str, np.ndarray]:
        oldest = self.head if self.size == self.capacity else 0
        starts = self.random.integers(self.size - length + 1, size=batch)
        rows = (oldest + starts[:, None] + np.arange(length)) % self.capacity
        out = {name: values[rows] for name, values in self.data.items()}
        out["is_first"][:, 0] = True
        return out


def steps(n: int) -> dict[str, np.ndarray]:
    """Transitions to store, with a leading axis of n."""
    random = np.random.default_rng(0)
    return {
        "observation": random.normal(size=(n, 24)).astype(np.float32),
        "action": random.uniform(-1, 1, (n, 6)).astype(np.float32),
        "reward": random.random(n).astype(np.float32),
        "is_terminal": np.zeros(n, bool),
    }


def full_ring() -> Ring:
    ring = Ring(N)
    for name, values in steps(N).items():
        ring.data[name][:] = values
    ring.data["is_first"][::EPISODE] = True
    ring.size = N
    return ring


def full_buffer(rule: str) -> Buffer:
    buffer = Buffer(FIELDS, capacity_transitions=N, rule="passive")
    content = steps(EPISODE)
    for episode in range(N // EPISODE):
        buffer.add_episode(regime=int(episode >= 500), **content)
    buffer.rule = rule
    for ticket, _ in buffer.sweep(1024):
        buffer.set_errors(ticket, 1 + np.arange(len(ticket.slots)) % 7 / 7)
    return buffer


def paired(work: Work, baseline: Work, n_rounds: int = N_ROUNDS) -> dict[str, float]:
    """CPU time of the baseline over that of the work, and the work's own time."""
    work(), baseline()
    ratios, times = [], []
    for _ in range(n_rounds):
        work_s, other = cpu_s(work), cpu_s(baseline)
        ratios.append(other / work_s)
        times.append(work_s)
    return {
        "ratio": statistics.median(ratios),
        "min": min(ratios),
        "max": max(ratios),
        "seconds": statistics.median(times),
    }


def cpu_s(work: Work) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def samples_and_adds(
    replay: Buffer | Ring, step: dict[str, np.ndarray], n_samples: int
) -> Work:
    def work() -> None:
        for sample in range(n_samples):
            if sample % SAMPLES_BETWEEN_ADDS == 0:
                replay.add(**step)
            replay.sample(BATCH, LENGTH)

    return work


def measure_rules(ring: Ring) -> dict[str, Any]:
    one = {**steps(1), "is_first": np.zeros(1, bool)}
    results = {}
    for rule in RULES:
        buffer = full_buffer(rule)
        name = rule if "unit" in rule else rule.split(":")[0]
        results[name] = paired(
            samples_and_adds(buffer, one, 320), samples_and_adds(ring, one, 320)
        )
        if name == "passive":
            results["passive, no adds"] = paired(
                lambda b=buffer: [b.sample(BATCH, LENGTH) for _ in range(320)],
                lambda: [ring.sample(BATCH, LENGTH) for _ in range(320)],
            )
        if name == "graded":
            results["rewrite all weights"] = {"seconds": rewrite_s(buffer)}
        if name == "passive":
            n_bytes = buffer.storage.n_bytes() + ledger_bytes(buffer)
            results["bytes a transition"] = {"value": n_bytes / N}
        del buffer
    return results


def rewrite_s(buffer: Buffer) -> float:
    """New errors for every chunk, and the weights that follow from them."""
    slots = buffer.ledger.slots(finished=True)
    stamps = buffer.ledger.stamp[slots]
    errors = np.random.default_rng(0).random(len(slots))

    def work() -> None:
        buffer.ledger.set_errors(slots, stamps, errors)
        _ = [spans.mass_ends for spans in buffer.sampler.parts()]

    work()
    return statistics.median(cpu_s(work) for _ in range(N_ROUNDS))


def ledger_bytes(buffer: Buffer) -> int:
    ledger = buffer.ledger
    arrays = [a for a in vars(ledger).values() if isinstance(a, np.ndarray)]
    return sum(array.nbytes for array in arrays)


def measure_adds(ring: Ring) -> dict[str, float]:
    """Both are given the same arrays in the same call."""
    n = 20_000
    content = {**steps(n), "is_first": np.arange(n) % EPISODE == 0}
    each = [{k: v[i : i + 1] for k, v in content.items()} for i in range(n)]

    def adding(replay: Buffer | Ring) -> Work:
        def work() -> None:
            for step in each:
                replay.add(**step)

        return work

    return paired(adding(full_buffer("passive")), adding(ring), 3 * N_ROUNDS)


def measure_peers(ring: Ring) -> dict[str, Any]:
    """What is installed of the peers; each is said to be missing otherwise."""
    peers = {
        "cpprb": cpprb_weights,
        "flashbax": flashbax_samples,
        "torchrl": torchrl_samples,
    }
    return {
        f"{name} ({measure.__doc__})": measure(ring)
        if importlib.util.find_spec(name)
        else "not installed"
        for name, measure in peers.items()
    }


def cpprb_weights(ring: Ring) -> dict[str, float]:
    """1M new weights"""
    from cpprb import PrioritizedReplayBuffer

    buffer = PrioritizedReplayBuffer(N, {"a": {}})
    buffer.add(a=np.zeros(N))
    index, weights = np.arange(N), np.random.default_rng(0).random(N)
    times = [cpu_s(lambda: buffer.update_priorities(index, weights)) for _ in range(3)]
    return {"seconds": statistics.median(times)}


def flashbax_samples(ring: Ring) -> dict[str, float]:
    """Trajectory buffer"""
    import flashbax
    import jax

    peer = flashbax.make_trajectory_buffer(
        add_batch_size=1,
        sample_batch_size=BATCH,
        sample_sequence_length=LENGTH,
        period=1,
        min_length_time_axis=LENGTH,
        max_length_time_axis=N,
    )
    content = {name: values[None] for name, values in steps(N).items()}
    state = peer.init({name: values[0, 0] for name, values in content.items()})
    state = jax.jit(peer.add, donate_argnums=0)(state, content)
    sample = jax.jit(peer.sample)
    keys = iter(jax.random.split(jax.random.key(0), 100_000))
    return paired(
        lambda: [jax.block_until_ready(sample(state, next(keys))) for _ in range(320)],
        lambda: [ring.sample(BATCH, LENGTH) for _ in range(320)],
    )


def torchrl_samples(ring: Ring) -> dict[str, float]:
    """SliceSampler"""
    import torch
    from tensordict import TensorDict
    from torchrl.data import LazyTensorStorage, ReplayBuffer, SliceSampler

    torch.set_num_threads(1)
    peer = ReplayBuffer(
        storage=LazyTensorStorage(N),
        sampler=SliceSampler(slice_len=LENGTH, traj_key="episode"),
        batch_size=BATCH * LENGTH,
    )
    content = {name: torch.as_tensor(values) for name, values in steps(N).items()}
    content["episode"] = torch.arange(N) // EPISODE
    peer.extend(TensorDict(content, batch_size=[N]))
    return paired(
        lambda: [peer.sample() for _ in range(320)],
        lambda: [ring.sample(BATCH, LENGTH) for _ in range(320)],
        n_rounds=3,
    )


def show(results: dict[str, Any]) -> None:
    print(f"{'':32}{'against the ring':>26}{'each':>14}")
    for name, result in results.items():
        if not isinstance(result, dict):
            print(f"{name:32}{result:>26}")
        elif "ratio" in result:
            ratio = (
                f"{result['ratio']:.2f} ({result['min']:.2f} to {result['max']:.2f})"
            )
            count = 20_000 if name == "step adds" else 320
            each = f"{result['seconds'] / count * 1e6:.1f} us"
            print(f"{name:32}{ratio:>26}{each:>14}")
        else:
            shown = ", ".join(f"{k} {v:.6g}" for k, v in result.items())
            print(f"{name:32}{shown:>26}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the numbers only")
    arguments = parser.parse_args()
    ring = full_ring()
    results = measure_rules(ring)
    results["step adds"] = measure_adds(ring)
    results |= measure_peers(ring)
    if arguments.json:
        print(json.dumps(results, indent=1))
    else:
        show(results)


if __name__ == "__main__":
    main()
