"""How fast the worlds are beside dm_control's `env.step`, interleaved in one run.

    python benchmarks/physics.py            # a table
    python benchmarks/physics.py --json     # the numbers

Each round plays one episode of random actions four ways, in slices taken in turn:
dm_control's environment as shipped, in a process of its own; the bare MuJoCo steps of
64 worlds, nothing observed or rewarded, which bound what any wrapper can reach; 64
worlds on one thread; 64 worlds on two. Both sides hold an action for two frames and
hand over a flat observation and a summed reward; starting an episode is not timed. CPU
time is summed over all threads; ratios are taken inside a round, and their median is
reported with the range.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mujoco.batch import Batch

from fallow.dynamics import EPISODE_FRAMES, TASKS, Worlds
from fallow.dynamics.simulator import compile_body
from fallow.dynamics.tasks import ACTION_REPEAT

NAMES = ("walker-walk", "cheetah-run")
N_WORLDS = 64
N_SLICES = 10
SLICE = EPISODE_FRAMES // ACTION_REPEAT // N_SLICES  # transitions
REST_S = 0.01  # an idle thread of the way before spins for about a millisecond

PEER, BARE, ONE, TWO = "dm_control", "bare MuJoCo", "worlds, 1 thread", "worlds, 2"

Played = tuple[float, float, float]
"""Frames, CPU seconds, seconds."""
Way = tuple[Callable[[], object], Callable[[], Played]]
"""How to begin an episode, and how to play a slice of it."""


def peer(task: str) -> Way:
    """One dm_control environment with the same outputs as the worlds."""
    script = Path(__file__).with_name("physics_peer.py")
    process = subprocess.Popen(
        [sys.executable, script, task, str(SLICE), str(ACTION_REPEAT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(what: str) -> str:
        print(what, file=process.stdin, flush=True)
        return process.stdout.readline()

    def play() -> Played:
        frames, cpu_s, wall_s = map(float, ask("play").split())
        return frames, cpu_s, wall_s

    return lambda: ask("begin"), play


def timed(play: Callable[[], int]) -> Callable[[], Played]:
    def work() -> Played:
        cpu, wall = time.process_time(), time.perf_counter()
        frames = play()
        return frames, time.process_time() - cpu, time.perf_counter() - wall

    return work


def bare(task: str) -> Way:
    """Only the physics of 64 worlds on one thread."""
    body = TASKS[task].body
    model = compile_body(body)
    batch = Batch(model, N_WORLDS, nthread=1, persistent=True)
    random = np.random.RandomState(0)

    def begin() -> None:
        batch.reset()
        for row in range(N_WORLDS):
            batch.qpos[row], batch.qvel[row] = body.sample_start(model, random)

    def play() -> int:
        for actions in random.uniform(-1, 1, (SLICE, N_WORLDS, model.nu)):
            batch.ctrl = actions
            batch.step(nstep=body.n_substeps * ACTION_REPEAT)
        return SLICE * N_WORLDS * ACTION_REPEAT

    return begin, timed(play)


def ours(task: str, n_threads: int) -> Way:
    """64 agents with one world each, under a condition."""
    seeds = np.arange(N_WORLDS)[:, None]
    worlds = Worlds(
        task, "gain", seeds, action_repeat=ACTION_REPEAT, n_threads=n_threads
    )
    random = np.random.default_rng(0)

    def play() -> int:
        shape = (SLICE, N_WORLDS, 1, worlds.n_actuators)
        for actions in random.uniform(-1, 1, shape):
            worlds.step(actions)
        return SLICE * N_WORLDS * ACTION_REPEAT

    return worlds.reset, timed(play)


def play_round(ways: dict[str, Way]) -> dict[str, tuple[float, float]]:
    """Frames per CPU second and per second of every way, over one episode of each.

    The last slice of an episode is left out: the worlds begin the next one in it.
    """
    for begin, _ in ways.values():
        begin()
    totals = {way: np.zeros(3) for way in ways}
    for _ in range(N_SLICES - 1):
        for way, (_, play) in ways.items():
            time.sleep(REST_S)
            totals[way] += play()
    return {way: (n / cpu, n / wall) for way, (n, cpu, wall) in totals.items()}


def measure(task: str, n_rounds: int) -> dict[str, Any]:
    """Rates and ratios of one task over interleaved rounds."""
    ways = {PEER: peer(task), BARE: bare(task), ONE: ours(task, 1), TWO: ours(task, 2)}
    rounds = [play_round(ways) for _ in range(n_rounds)]
    return {
        "task": task,
        "rounds": n_rounds,
        "frames_per_cpu_s": {w: summary([r[w][0] for r in rounds]) for w in ways},
        "frames_per_s": {w: summary([r[w][1] for r in rounds]) for w in ways},
        "cpu_ratio_to_dm_control": {
            w: summary([r[w][0] / r[PEER][0] for r in rounds]) for w in ways
        },
        "wall_ratio_two_threads_to_one": summary(
            [r[TWO][1] / r[ONE][1] for r in rounds]
        ),
    }


def summary(values: list[float]) -> dict[str, float]:
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }


def spread(values: dict[str, float]) -> str:
    return f"{values['median']:.2f} ({values['min']:.2f} to {values['max']:.2f})"


def show(result: dict[str, Any]) -> None:
    print(f"\n{result['task']}: median of {result['rounds']} rounds (min to max)")
    print(f"{'':20}{'frames / CPU s':>16}{'frames / s':>14}{'CPU ratio':>24}")
    for way, cpu in result["frames_per_cpu_s"].items():
        ratio = spread(result["cpu_ratio_to_dm_control"][way])
        wall = result["frames_per_s"][way]["median"]
        print(f"{way:20}{cpu['median']:>16,.0f}{wall:>14,.0f}{ratio:>24}")
    scaling = spread(result["wall_ratio_two_threads_to_one"])
    print(f"two threads against one, wall clock: {scaling}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print the numbers only")
    arguments = parser.parse_args()
    results = [measure(task, arguments.rounds) for task in NAMES]
    if arguments.json:
        print(json.dumps(results, indent=1))
    else:
        for result in results:
            show(result)


if __name__ == "__main__":
    main()
