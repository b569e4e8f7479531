"""How long a diagnosis takes, cold and against the number of episodes.

    python benchmarks/response.py            # tables
    python benchmarks/response.py --json     # the numbers

First a log of 1M transitions (2,000 episodes, 6 joints) is diagnosed by the command
line in a new process, start-up included: a history, an npz archive and a CSV table.
Then the segmentation of 300 to 30,000 episodes, without a change (the slowest case) and
with one in every 50 episodes, beside `ruptures.Pelt` in the same process where that
takes less than a minute or so; both must find the same changes.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import ruptures

from fallow.core.records import Episode
from fallow.diagnosis import Example, decide, example
from fallow.diagnosis.segments import MIN_SEGMENT, PENALTY_FACTOR, change_points
from fallow.logs import Header, HistoryWriter
from fallow.logs.log import Log

N_EPISODES, N_STEPS, N_JOINTS = 2000, 500, 6
N_COLUMNS = 24
N_RUNS = 5
SIZES = (300, 1000, 3000, 10_000, 30_000)
PELT_SIZES = {"none": (300, 1000), "every 50": (300, 1000, 3000)}


def big_log() -> Log:
    truth = Example(
        change_points=(1200,),
        n_episodes=N_EPISODES,
        n_steps=N_STEPS,
        n_joints=N_JOINTS,
        amplitude_drift=0.001,
    )
    return example(truth)


def write_history(log: Log, path: Path) -> None:
    """As a walker's: 24 columns of float32, the last six velocities."""
    header = Header(
        columns=tuple(f"column {i}" for i in range(N_COLUMNS)),
        actuators=log.actuators,
        actuator_velocity=tuple(range(N_COLUMNS - N_JOINTS, N_COLUMNS)),
        control_step_s=0.05,
    )
    velocity = log.velocity.reshape(N_EPISODES, N_STEPS + 1, N_JOINTS)
    action = log.action.reshape(N_EPISODES, N_STEPS, N_JOINTS).astype(np.float32)
    rest = np.zeros((N_STEPS + 1, N_COLUMNS - N_JOINTS))
    with HistoryWriter(path, header) as writer:
        for e in range(N_EPISODES):
            writer.add(
                Episode(
                    observation=np.concatenate([rest, velocity[e]], axis=1),
                    action=action[e],
                    reward=np.zeros(N_STEPS, np.float32),
                    start_frame=e * N_STEPS,
                )
            )


def write_npz(log: Log, path: Path) -> None:
    np.savez(
        path,
        velocity=log.velocity.astype(np.float32).reshape(N_EPISODES, -1, N_JOINTS),
        action=log.action.astype(np.float32).reshape(N_EPISODES, -1, N_JOINTS),
    )


def write_csv(log: Log, path: Path) -> None:
    velocity = log.velocity.reshape(N_EPISODES, -1, N_JOINTS)
    action = np.zeros_like(velocity)
    action[:, :-1] = log.action.reshape(N_EPISODES, -1, N_JOINTS)
    episode = np.repeat(np.arange(N_EPISODES), N_STEPS + 1)
    table = np.column_stack(
        [episode, velocity.reshape(-1, N_JOINTS), action.reshape(-1, N_JOINTS)]
    )
    names = [f"j{j}_{kind}" for kind in ("vel", "cmd") for j in range(N_JOINTS)]
    header = ",".join(["episode", *names])
    np.savetxt(path, table, fmt="%.6g", delimiter=",", header=header, comments="")


def cold(path: Path) -> dict[str, Any]:
    """Wall and CPU seconds of `fallow diagnose` in new processes."""
    walls, cpus = [], []
    command = [sys.executable, "-m", "fallow.cli", "diagnose", str(path), "--json"]
    for _ in range(N_RUNS):
        begin, used = time.perf_counter(), children_s()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        walls.append(time.perf_counter() - begin)
        cpus.append(children_s() - used)
    found = json.loads(done.stdout)
    assert found["change_points"] == [1200], found["change_points"]
    return {
        "wall_s": statistics.median(walls),
        "wall_min_s": min(walls),
        "wall_max_s": max(walls),
        "cpu_s": statistics.median(cpus),
        "megabytes": path.stat().st_size / 1e6,
    }


def children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def measure_cold() -> dict[str, Any]:
    log = big_log()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write in {
            "history": write_history,
            "npz": write_npz,
            "csv": write_csv,
        }.items():
            path = Path(folder) / ("run." + name.replace("history", "fallow"))
            write(log, path)
            results[name] = cold(path)
            path.unlink()
    begin = time.process_time()
    decide(log)
    results["decision alone, log in memory"] = {"cpu_s": time.process_time() - begin}
    return results


def series(n: int, kind: str) -> np.ndarray:
    random = np.random.default_rng(n)
    values = random.normal(size=(n, N_JOINTS))
    if kind != "none":
        values += 3.0 * (np.arange(n) // 50 % 2)[:, None]
    return values


def pelt(values: np.ndarray) -> list[int]:
    n, d = values.shape
    model = ruptures.Pelt(model="l2", jump=1, min_size=MIN_SEGMENT).fit(values)
    return model.predict(pen=PENALTY_FACTOR * d * np.log(n))[:-1]


def measure_sizes() -> list[dict[str, Any]]:
    results = []
    for kind, peer_sizes in PELT_SIZES.items():
        for n in SIZES:
            values = series(n, kind)
            found, kernel_s = timed(change_points, values)
            row = {
                "changes": kind,
                "n_episodes": n,
                "found": len(found),
                "kernel_s": kernel_s,
                "pelt_s": None,
            }
            if n in peer_sizes:
                expected, row["pelt_s"] = timed(pelt, values)
                assert found == expected
            results.append(row)
    return results


def timed(work: Any, values: np.ndarray) -> tuple[list[int], float]:
    begin = time.process_time()
    found = work(values)
    return found, time.process_time() - begin


def show(cold_results: dict[str, Any], sizes: list[dict[str, Any]]) -> None:
    print("| 1M transitions | MB | wall, s (range) | CPU, s |")
    print("| --- | --- | --- | --- |")
    for name, r in cold_results.items():
        if "wall_s" in r:
            wall = f"{r['wall_s']:.2f} ({r['wall_min_s']:.2f} to {r['wall_max_s']:.2f})"
            print(f"| {name} | {r['megabytes']:.0f} | {wall} | {r['cpu_s']:.2f} |")
        else:
            print(f"| {name} | | | {r['cpu_s']:.2f} |")
    print()
    print("| changes | episodes | found | ours, CPU s | ruptures.Pelt, CPU s | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for r in sizes:
        peer = "not run" if r["pelt_s"] is None else f"{r['pelt_s']:.2f}"
        ratio = "" if r["pelt_s"] is None else f"{r['pelt_s'] / r['kernel_s']:,.0f}"
        print(
            f"| {r['changes']} | {r['n_episodes']:,} | {r['found']} | "
            f"{r['kernel_s']:.4f} | {peer} | {ratio} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the numbers only")
    arguments = parser.parse_args()
    cold_results, sizes = measure_cold(), measure_sizes()
    if arguments.json:
        print(json.dumps({"cold": cold_results, "sizes": sizes}, indent=1))
    else:
        show(cold_results, sizes)


if __name__ == "__main__":
    main()
