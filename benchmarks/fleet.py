"""Updates a second of a fleet of Dreamers, against the number of branches.

    python benchmarks/fleet.py --presets lean paper --branches 1 40
    python benchmarks/fleet.py --presets tiny --branches 1 3 --rounds 3   # on a CPU
    python benchmarks/fleet.py --presets lean --branches 80 --loop        # with worlds

Every line is the median over rounds of several updates of all branches, on filled
replay, with indices drawn and sent each time. The peak that the share refers to is
measured in the same run: a large bf16 product (fp32 on a CPU). `--loop` adds the whole
loop with physics, acting and storing; its share is of the learner alone. `--profile`
names the kernels in which the time goes. Speeds of other programs, measured on one
H200 with the paper's sizes: the PyTorch reference 2.3 updates/s; a plain vmapped
JAX update of 40 branches 165.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import statistics
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

from fallow.agents import AGENTS
from fallow.agents.fleet import Fleet
from fallow.agents.programs import Programs, joined_metrics
from fallow.dynamics import TASKS
from fallow.records import Branch
from fallow.replay import Field
from fallow.replay.fleet import FleetBuffer

TASK = "walker-walk"


def measured_peak() -> float:
    """FLOP/s of a large product of random matrices."""
    on_gpu = jax.default_backend() != "cpu"
    n = 8192 if on_gpu else 1024
    x = jax.random.normal(jax.random.key(0), (n, n))
    x = x.astype(jnp.bfloat16 if on_gpu else jnp.float32)
    multiply = jax.jit(lambda a: (a @ a) * (1 / n**0.5).__float__())
    jax.block_until_ready(multiply(x))
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        y = x
        for _ in range(4):
            y = multiply(y)
        jax.block_until_ready(y)
        times.append((time.perf_counter() - begin) / 4)
    return 2 * n**3 / statistics.median(times)


def build(preset: str, changes: dict):
    kind, body = AGENTS["dreamer"], TASKS[TASK].body
    config = dataclasses.replace(kind.presets[preset], **changes)
    return kind.build(preset, config, len(body.columns), len(body.actuator_velocity))


def filled(agent, n_branches: int) -> FleetBuffer:
    """Replay of 1,000 random steps a branch."""
    fields = {
        "observation": Field((agent.n_columns,)),
        "action": Field((agent.n_actuators,)),
        "reward": Field(()),
    }
    n_worlds = agent.schedule.n_worlds
    fleet = FleetBuffer(
        fields, ["passive"] * n_branches, list(range(n_branches)), n_worlds, 10_000
    )
    random = np.random.default_rng(0)
    shape = (n_branches, n_worlds)
    for step in range(250):
        fleet.add(
            is_first=np.full(shape, step % 125 == 0),
            **{
                name: random.normal(size=(*shape, *field.shape)).astype(np.float32)
                for name, field in fields.items()
            },
        )
    return fleet


def measure(agent, n_branches: int, n_updates: int, n_rounds: int, trace) -> dict:
    """The learner alone: compile time, updates a second, memory."""
    buffer = filled(agent, n_branches)
    programs = Programs(agent, buffer.layout, list(range(n_branches)))
    state = programs.init()
    state_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    batch, length = agent.schedule.batch, agent.schedule.length

    def round_of_updates(state):
        for k in range(n_updates):
            indices = buffer.draw(1, batch, length)
            state, metrics = programs.update(state, buffer.groups, indices, k)
        jax.block_until_ready(metrics)
        return state, metrics

    begin = time.perf_counter()
    indices = buffer.draw(1, batch, length)
    state, metrics = programs.update(state, buffer.groups, indices, 0)
    jax.block_until_ready(metrics)
    compile_s = time.perf_counter() - begin
    state, metrics = round_of_updates(state)
    times = []
    for _ in range(n_rounds):
        begin = time.perf_counter()
        state, metrics = round_of_updates(state)
        times.append((time.perf_counter() - begin) / n_updates)
    if trace:
        with jax.profiler.trace(trace):
            state, metrics = round_of_updates(state)
        print_kernels(trace, n_updates)
    last = joined_metrics(metrics)
    bad = [name for name, values in last.items() if not np.isfinite(values).all()]
    assert not bad, f"not finite: {bad}"
    stats = jax.devices()[0].memory_stats() or {}
    return {
        "compile_s": compile_s,
        "updates_per_s": n_branches / statistics.median(times),
        "slowest": n_branches / max(times),
        "fastest": n_branches / min(times),
        "peak_gb": stats.get("peak_bytes_in_use", 0) / 1e9,
        "estimated_gb": (n_branches * agent.working_bytes() + 2 * state_bytes) / 1e9,
    }


def measure_loop(agent, n_branches: int, n_steps: int) -> float:
    """Updates a second of the whole loop: worlds, acting, storing, learning."""
    branches = [Branch(seed) for seed in range(n_branches)]
    fleet = Fleet(TASK, agent, branches, 20_000)
    fleet.run((agent.schedule.prefill_steps + 10) * fleet.frames_per_step)
    jax.block_until_ready(fleet.state)
    done, begin = fleet.n_updates, time.perf_counter()
    for _ in range(n_steps):
        fleet.step()
    jax.block_until_ready(fleet.state)
    seconds = time.perf_counter() - begin
    return (fleet.n_updates - done) * n_branches / seconds


def print_kernels(trace: str, n_updates: int, n_shown: int = 45) -> None:
    """Where the device spends its time, by kernel."""
    path = max(
        pathlib.Path(trace).rglob("*.xplane.pb"), key=lambda p: p.stat().st_mtime
    )
    data = jax.profiler.ProfileData.from_file(str(path))
    total, count = collections.Counter(), collections.Counter()
    for plane in data.planes:
        if "GPU" not in plane.name:
            continue
        for line in plane.lines:
            if "Stream" not in line.name:
                continue
            for event in line.events:
                total[event.name] += event.duration_ns / 1e3
                count[event.name] += 1
    all_us, n = sum(total.values()), sum(count.values())
    print(f"kernels an update {n / n_updates:,.0f}, busy {all_us / n_updates:,.0f} us")
    for name, us in total.most_common(n_shown):
        each = us / count[name]
        share = us / max(all_us, 1e-9)
        n_each = count[name] / n_updates
        print(f"  {share:6.1%} {n_each:7.1f} x {each:8.1f} us {name[:80]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=["tiny"])
    parser.add_argument("--branches", nargs="+", type=int, default=[1, 3])
    parser.add_argument("--updates", type=int, default=10, help="in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop", action="store_true", help="also the whole loop")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], help="sizes, e.g. unroll=8")
    parser.add_argument("--cache", help="folder of the compilation cache")
    parser.add_argument("--json", help="write the numbers here too")
    given = parser.parse_args()
    if given.cache:
        jax.config.update("jax_compilation_cache_dir", given.cache)
    changes = {}
    for item in given.set:
        name, _, value = item.partition("=")
        changes[name] = int(value) if value.isdigit() else value
    peak = measured_peak()
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, {changes or ''}")
    print(f"matmul peak {peak / 1e12:.1f} TFLOP/s")
    head = "preset branches updates/s   (range)          floor-share compile_s"
    print(head + " peak_GB estimated_GB" + (" loop/s loop-share" if given.loop else ""))
    rows = []
    for preset in given.presets:
        agent = build(preset, changes)
        for n_branches in given.branches:
            with tempfile.TemporaryDirectory() as trace:
                row = measure(
                    agent,
                    n_branches,
                    given.updates,
                    given.rounds,
                    trace if given.profile else None,
                )
            row["floor_share"] = row["updates_per_s"] * agent.update_flops() / peak
            line = (
                f"{preset:6} {n_branches:8} {row['updates_per_s']:9.1f} "
                f"({row['slowest']:8.1f} to {row['fastest']:8.1f}) "
                f"{row['floor_share']:9.1%} {row['compile_s']:9.1f} "
                f"{row['peak_gb']:7.1f} {row['estimated_gb']:12.1f}"
            )
            if given.loop:
                n_steps = max(20, 4 * given.updates)
                row["loop_updates_per_s"] = measure_loop(agent, n_branches, n_steps)
                share = row["loop_updates_per_s"] / row["updates_per_s"]
                line += f" {row['loop_updates_per_s']:8.1f} {share:8.1%}"
            print(line, flush=True)
            rows.append({"preset": preset, "branches": n_branches, **changes, **row})
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
