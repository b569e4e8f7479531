"""Updates a second of a fleet, against the number of branches.

    python benchmarks/fleet.py --presets lean paper --branches 1 40
    python benchmarks/fleet.py --presets tiny --branches 1 3 --rounds 3   # on a CPU
    python benchmarks/fleet.py --presets lean --branches 80 --loop        # with worlds
    python benchmarks/fleet.py --agent tdmpc --presets lean --branches 1 80 --loop

Every line is the median over rounds of several updates of all branches, on filled
replay, with indices sampled and sent each time; then steps acted a second (plans, for
TD-MPC2), in as many worlds as a branch learns in. The peak that shares refer to is
measured in the same run: a large bf16 product (fp32 on a CPU). `--loop` adds the whole
loop with physics, acting and storing; its share is of the learner alone, and the line
above it says where the host's time goes in a step of all worlds. It also adds the
seconds of an evaluation, alone and beside the loop (the lines above are without and
with it), and transitions a second with evaluation beside: 10 episodes every 10,000
frames of a branch.
`--profile` names the kernels in which the time goes. Speeds of other programs, measured
on one H200 with the paper's sizes of Dreamer: the PyTorch reference 2.3 updates/s; a
plain vmapped JAX update of 40 branches 165.
"""

import argparse
import collections
import json
import pathlib
import statistics
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

from fallow.agents import AGENTS
from fallow.agents.clock import CONCURRENT
from fallow.agents.compiling import keep_compiled
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.programs import Programs, joined_metrics
from fallow.agents.tdmpc.cost import plan_flops
from fallow.core.records import Branch
from fallow.dynamics.tasks import EPISODE_FRAMES
from fallow.replay import Field
from fallow.replay.device_buffer import DeviceBuffer

TASK = "walker-walk"
CAPACITY = 10_000
"""Transitions of a branch's replay, with and without worlds: the same programs."""
EVALUATE_FRAMES, N_EPISODES = 10_000, 10
"""Frames of a branch between two evaluations, and episodes of one: the study's."""
ACT_FLOPS = {"tdmpc": plan_flops}
"""Operations of acting in one world, where they are worth a floor."""


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


def filled(agent, n_branches: int) -> DeviceBuffer:
    """Replay of 1,000 random steps a branch."""
    fields = {
        "observation": Field((agent.n_columns,)),
        "action": Field((agent.n_actuators,)),
        "reward": Field(()),
    }
    n_worlds = agent.schedule.n_worlds
    fleet = DeviceBuffer(
        fields, ["passive"] * n_branches, list(range(n_branches)), n_worlds, CAPACITY
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


class Learner:
    """The programs of a fleet on filled replay, without worlds."""

    def __init__(self, agent, n_branches: int) -> None:
        self.agent, self.n_branches = agent, n_branches
        self.buffer = filled(agent, n_branches)
        self.programs = Programs(agent, self.buffer.layout, list(range(n_branches)))
        self.state = self.programs.init()
        self.state_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(self.state))
        self.metrics = [{} for _ in self.state]
        self.n_updates = np.zeros(n_branches, np.int64)

    def update(self, n: int) -> float:
        """Seconds of n updates of all branches."""
        begin, schedule = time.perf_counter(), self.agent.schedule
        everyone = np.ones(self.n_branches, bool)
        for _ in range(n):
            indices = self.buffer.sample(
                1, schedule.batch, schedule.length, schedule.within_episodes
            )
            self.state, self.metrics = self.programs.update(
                self.state,
                self.metrics,
                self.buffer.groups,
                indices,
                self.n_updates,
                everyone,
            )
            self.n_updates = self.n_updates + 1
        jax.block_until_ready(self.metrics)
        return time.perf_counter() - begin

    def act(self, n: int) -> float:
        """Seconds of n steps of acting in all worlds of all branches."""
        n_worlds = self.agent.schedule.n_worlds
        carry = self.programs.initial_carry(n_worlds)
        shape = (self.n_branches, n_worlds)
        seen = np.random.default_rng(0).normal(size=(*shape, self.agent.n_columns))
        begin = time.perf_counter()
        for count in range(n):
            first = np.full(shape, count == 0)
            acted = self.programs.act(self.state, carry, seen, first, count, True)
            carry = acted.carry
        return time.perf_counter() - begin


def measure(agent, n_branches: int, n_updates: int, n_rounds: int, trace) -> dict:
    """The learner alone: compile time, updates and steps acted a second, memory."""
    learner = Learner(agent, n_branches)
    compile_s = learner.update(1)
    learner.update(n_updates)
    times = [learner.update(n_updates) / n_updates for _ in range(n_rounds)]
    if trace:
        with jax.profiler.trace(trace):
            learner.update(n_updates)
        print_kernels(trace, n_updates)
    last = joined_metrics(learner.metrics)
    bad = [name for name, values in last.items() if not np.isfinite(values).all()]
    assert not bad, f"not finite: {bad}"
    learner.act(2)
    act_s = statistics.median(learner.act(20) / 20 for _ in range(n_rounds))
    stats = jax.devices()[0].memory_stats() or {}
    estimated = n_branches * agent.working_bytes() + 2 * learner.state_bytes
    return {
        "compile_s": compile_s,
        "updates_per_s": n_branches / statistics.median(times),
        "slowest": n_branches / max(times),
        "fastest": n_branches / min(times),
        "acts_per_s": n_branches * agent.schedule.n_worlds / act_s,
        "peak_gb": stats.get("peak_bytes_in_use", 0) / 1e9,
        "estimated_gb": estimated / 1e9,
    }


def measure_loop(agent, n_branches: int, n_steps: int) -> dict:
    """The whole loop: worlds, acting, storing, learning; evaluation alone and beside.

    What an evaluation takes beside the loop is what it makes the loop longer.
    """
    branches = [Branch(seed) for seed in range(n_branches)]
    fleet = Fleet(TASK, agent, branches, CAPACITY)
    fleet.run((agent.schedule.prefill_steps + 10) * fleet.frames_per_step)
    done = fleet.learners.n_updates
    step_s = seconds_a_step(fleet, n_steps)
    updates = (fleet.learners.n_updates - done) * n_branches
    nothing = (fleet.programs.initial_carry(N_EPISODES), *first_sight(fleet))
    fleet.programs.act(fleet.learners.state, *nothing, 0, explore=False)  # compiles
    begin = time.perf_counter()
    fleet.evaluate(N_EPISODES)
    evaluate_s = time.perf_counter() - begin
    fleet.evaluate_concurrently(N_EPISODES)
    n_evaluated = EPISODE_FRAMES // fleet.worlds.action_repeat
    beside_s = n_evaluated * (seconds_a_step(fleet, min(n_steps, n_evaluated)) - step_s)
    steps = EVALUATE_FRAMES / fleet.frames_per_step
    n_transitions = n_branches * steps * agent.schedule.n_worlds
    return {
        "loop_updates_per_s": updates / (n_steps * step_s),
        "evaluate_s": evaluate_s,
        "beside_s": beside_s,
        "transitions_per_s": n_transitions / (steps * step_s + beside_s),
    }


def seconds_a_step(fleet: Fleet, n_steps: int) -> float:
    """Of the next steps, the device's work included."""
    jax.block_until_ready(fleet.learners.state)
    before, begin = dict(fleet.clock.seconds), time.perf_counter()
    for _ in range(n_steps):
        fleet.step()
    jax.block_until_ready(fleet.learners.state)
    seconds = time.perf_counter() - begin
    print_time(fleet, before, seconds, n_steps)
    return seconds / n_steps


def print_time(fleet: Fleet, before: dict, seconds: float, n_steps: int) -> None:
    """Where the host's time went, in milliseconds a step."""
    each = {
        name: 1e3 * (spent - before.get(name, 0)) / n_steps
        for name, spent in fleet.clock.seconds.items()
    }
    beside = {name: each.pop(name, 0) for name in CONCURRENT}
    each["the rest"] = 1e3 * seconds / n_steps - sum(each.values())
    parts, others = (
        ", ".join(f"{name} {ms:.2f}" for name, ms in times.items())
        for times in (each, beside)
    )
    print(f"  ms a step {1e3 * seconds / n_steps:.2f}: {parts}; beside: {others}")


def first_sight(fleet: Fleet) -> tuple[np.ndarray, np.ndarray]:
    """Observations of the worlds of an evaluation, all zero, which all begin."""
    shape = (len(fleet.branches), N_EPISODES)
    return np.zeros((*shape, fleet.agent.n_columns)), np.ones(shape, bool)


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


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", default="dreamer", choices=list(AGENTS))
    parser.add_argument(
        "--presets", nargs="+", default=["tiny"], help="e.g. lean or lean:unroll=8"
    )
    parser.add_argument("--branches", nargs="+", type=int, default=[1, 3])
    parser.add_argument("--updates", type=int, default=10, help="in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop", action="store_true", help="also the whole loop")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--cache", help="folder of the compilation cache")
    parser.add_argument("--json", help="write the numbers here too")
    return parser.parse_args()


def measured(given: argparse.Namespace, agent, n_branches: int, peak: float) -> dict:
    """All numbers of a fleet of one size, and of its share of the peak."""
    with tempfile.TemporaryDirectory() as folder:
        trace = folder if given.profile else None
        row = measure(agent, n_branches, given.updates, given.rounds, trace)
    row["floor_share"] = row["updates_per_s"] * agent.update_flops() / peak
    if agent.name in ACT_FLOPS:
        count = ACT_FLOPS[agent.name]
        each = count(agent.config, agent.n_columns, agent.n_actuators)
        row["act_floor_share"] = row["acts_per_s"] * each / peak
    if given.loop:
        row |= measure_loop(agent, n_branches, max(20, 4 * given.updates))
        row["loop_share"] = row["loop_updates_per_s"] / row["updates_per_s"]
    return row


COLUMNS = {  # key: heading and format
    "branches": ("branches", "d"),
    "updates_per_s": ("updates/s", ".1f"),
    "slowest": ("slowest", ".1f"),
    "fastest": ("fastest", ".1f"),
    "floor_share": ("of-floor", ".1%"),
    "to_first": ("to-first", ".2f"),
    "compile_s": ("compile_s", ".1f"),
    "peak_gb": ("peak_GB", ".1f"),
    "estimated_gb": ("est_GB", ".1f"),
    "acts_per_s": ("acts/s", ".0f"),
    "act_floor_share": ("of-floor", ".1%"),
    "loop_updates_per_s": ("loop/s", ".1f"),
    "loop_share": ("of-learner", ".1%"),
    "evaluate_s": ("evaluate_s", ".1f"),
    "beside_s": ("beside_s", ".1f"),
    "transitions_per_s": ("transitions/s", ".0f"),
}
"""`to-first` is updates/s over those of the first line of the same preset."""


def line(preset: str, row: dict) -> str:
    """A row of the table, columns as wide as their headings."""
    cells = [
        f"{row[key]:{style}}".rjust(max(len(heading), 8))
        for key, (heading, style) in COLUMNS.items()
        if key in row
    ]
    return " ".join([f"{preset:6}", *cells])


def headings(row: dict) -> str:
    cells = [heading.rjust(8) for key, (heading, _) in COLUMNS.items() if key in row]
    return " ".join(["preset", *cells])


def main() -> None:
    given = arguments()
    if given.cache:
        keep_compiled(given.cache, trusted=True)
    peak, kind = measured_peak(), jax.devices()[0].device_kind
    print(f"{given.agent}, {kind}, jax {jax.__version__}")
    print(f"matmul peak {peak / 1e12:.2f} TFLOP/s")
    rows: list[dict] = []
    for preset in given.presets:
        agent = build_agent(TASK, given.agent, preset)
        for n_branches in given.branches:
            row = {"branches": n_branches} | measured(given, agent, n_branches, peak)
            first = next((seen for seen in rows if seen["preset"] == preset), row)
            row["to_first"] = row["updates_per_s"] / first["updates_per_s"]
            if not rows:
                print(headings(row))
            print(line(preset, row), flush=True)
            rows.append({"agent": given.agent, "preset": preset, **row})
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
