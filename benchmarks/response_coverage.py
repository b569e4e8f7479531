"""What the intervals of `fallow diagnose` cover, and which boundaries are abrupt.

    python benchmarks/response_coverage.py                    # both tables, an hour
    python benchmarks/response_coverage.py --task cheetah-run cartpole-swingup
    python benchmarks/response_coverage.py --policies 2 --repeats 8 --json

Each case is 120 histories of 80 episodes; the body changes at episode 40. Five policies
drift in five ways, and each records 24 histories that differ in noise and initial
states only. So the episodes of the other histories say what an interval should cover:

- *response*: eq. (8) over all 24 histories of the same policy, at the same episodes;
- *gain*: the share of the actuator's gain that the body really lost.

The second table counts the boundaries of `Diagnosis.segments` by the largest |z| of a
joint between the eight episodes before and after: those within two episodes of the
change, and all others, which drift and noise cause.
"""

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from simulated_logs import repeated_logs

from fallow.diagnosis import Example, example
from fallow.diagnosis.loss import magnitude
from fallow.diagnosis.pipeline import Diagnosis, diagnose_log
from fallow.diagnosis.truth import NEAR
from fallow.logs.log import Log

N_EPISODES, CHANGE = 80, 40
CASES = (
    ("example", "none"),
    ("example", "gain"),
    ("example", "damage of one of six"),
    ("example", "gain, the policy learns to brake"),
    ("cartpole-swingup", "none"),
    ("cartpole-swingup", "gain"),
    ("cheetah-run", "none"),
    ("cheetah-run", "gain"),
    ("cheetah-run", "gain:g=0.9"),
    ("cheetah-run", "damage"),
    ("walker-walk", "none"),
    ("walker-walk", "gain"),
    ("walker-walk", "damage"),
)
PLAIN = Example((1.0, 0.5), (CHANGE,), N_EPISODES)
EXAMPLES = {
    "none": replace(PLAIN, gains=(1.0,), change_points=()),
    "gain": PLAIN,
    "damage of one of six": replace(
        PLAIN, gains=(1.0, 0.0), n_joints=6, damaged_joint=1
    ),
    "gain, the policy learns to brake": replace(PLAIN, drag=0.5, feedback=-0.8),
}


def histories(task: str, condition: str, policy: int, n_repeats: int) -> list[Log]:
    """Histories of one policy that differ in noise and initial states."""
    if task == "example":
        truth = EXAMPLES[condition]
        return [example(truth, policy, noise) for noise in range(n_repeats)]
    return repeated_logs(task, condition, N_EPISODES, n_repeats, policy)


def one(case: tuple[str, str, int, int]) -> dict[str, Any]:
    """All measures of one policy's histories."""
    task, condition, policy, n_repeats = case
    found = [diagnose_log(log) for log in histories(*case)]
    joint = np.stack([d.decision.response.joint for d in found])
    mean = np.stack([d.decision.response.mean for d in found])
    return {
        "task": task,
        "condition": condition,
        "policy": policy,
        "n_histories": n_repeats,
        "joints": [hit for d in found for hit in joint_hits(d, joint)],
        "m_hat": [hit for d in found for hit in magnitude_hits(d, mean)],
        "boundaries": [b for d in found for b in boundaries(d)],
    }


def joint_hits(diagnosis: Diagnosis, pooled: np.ndarray) -> Iterator[dict[str, Any]]:
    """For each changed joint near the change: does its interval hold the two truths?

    `pooled` (n, k, d) is the response in all histories of the policy.
    """
    gain = diagnosis.log.gain
    assert gain is not None
    for joint in diagnosis.joints:
        at = joint.episode
        if not joint.changed or joint.interval is None or at is None:
            continue
        if abs(at - CHANGE) > NEAR:
            continue
        response = pooled[:, :, joint.index]
        earlier = [c.episode for c in diagnosis.changes if c.changed[joint.index]][:-1]
        start = max(earlier, default=0)
        expected = magnitude(response[:, at:].ravel(), response[:, start:at].ravel())
        true = 1 - gain[-1, joint.index] / gain[0, joint.index]
        yield hit(joint.interval, expected, true)


def magnitude_hits(diagnosis: Diagnosis, pooled: np.ndarray) -> Iterator[dict]:
    """The same for m_hat, `pooled` (n, k), where the history has a true one."""
    decision, truth = diagnosis.decision, diagnosis.truth
    if decision.interval is None or truth is None or truth.magnitude is None:
        return
    stale = decision.stale
    expected = magnitude(pooled[:, ~stale].ravel(), pooled[:, stale].ravel())
    yield hit(decision.interval, expected, truth.magnitude)


def hit(interval: tuple[float, float], response: float | None, gain: float) -> dict:
    low, high = interval
    return {
        "response": response is not None and bool(low <= response <= high),
        "gain": bool(low <= gain <= high),
        "width": high - low,
    }


def boundaries(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    """Every boundary: whether it is at the change, its largest z, and the verdict."""
    assert diagnosis.truth is not None
    true = diagnosis.truth.change_points
    for boundary in diagnosis.boundaries:
        yield {
            "at_change": any(abs(boundary.episode - at) <= NEAR for at in true),
            "z": float(boundary.z.max()),
            "effect": float(np.nanmax(np.abs(boundary.effect))),
            "abrupt": boundary.abrupt,
        }


def share(hits: list[dict[str, Any]], what: str) -> str:
    if not hits:
        return "–"
    return f"{100 * np.mean([hit[what] for hit in hits]):.0f} %"


def coverage_row(parts: list[dict[str, Any]]) -> list[str]:
    cells = [str(sum(part["n_histories"] for part in parts))]
    for kind in ("joints", "m_hat"):
        hits = [hit for part in parts for hit in part[kind]]
        width = f"{np.median([h['width'] for h in hits]):.2f}" if hits else "–"
        cells += [str(len(hits)), share(hits, "response"), share(hits, "gain"), width]
    return cells


def boundary_row(parts: list[dict[str, Any]]) -> list[str]:
    every = [boundary for part in parts for boundary in part["boundaries"]]
    cells = [str(sum(part["n_histories"] for part in parts))]
    for at_change in (True, False):
        some = [b for b in every if b["at_change"] == at_change]
        z = [b["z"] for b in some]
        low, middle, high = np.quantile(z, [0.05, 0.5, 0.95]) if z else (0.0, 0.0, 0.0)
        cells += [
            str(len(some)),
            f"{low:.1f}, {middle:.1f}, {high:.1f}" if z else "–",
            str(sum(b["abrupt"] for b in some)),
        ]
    return cells


COVERAGE = (
    *("history", "histories", "joint intervals", "cover the response"),
    *("cover the gain", "median width", "m_hat intervals", "cover the response"),
    *("cover the gain", "median width"),
)
BOUNDARIES = (
    *("history", "histories", "boundaries at the change", "z: 5 %, 50 %, 95 %"),
    *("abrupt", "other boundaries", "z: 5 %, 50 %, 95 %", "abrupt"),
)


def show(results: list[dict[str, Any]]) -> None:
    for head, row in ((COVERAGE, coverage_row), (BOUNDARIES, boundary_row)):
        print("| " + " | ".join(head) + " |")
        print("|" + " --- |" * len(head))
        for task, condition in CASES:
            parts = [
                r for r in results if (r["task"], r["condition"]) == (task, condition)
            ]
            if parts:
                cells = [f"{task}, `{condition}`", *row(parts)]
                print("| " + " | ".join(cells) + " |")
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", nargs="*", help="only these tasks")
    parser.add_argument("--policies", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=24, help="histories of each")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the numbers only")
    chosen = parser.parse_args()
    cases = [
        (*case, policy, chosen.repeats)
        for case in CASES
        if chosen.task is None or case[0] in chosen.task
        for policy in range(chosen.policies)
    ]
    with ProcessPoolExecutor(chosen.processes) as pool:
        results = list(pool.map(one, cases))
    if chosen.json:
        print(json.dumps(results, indent=1))
    else:
        show(results)


if __name__ == "__main__":
    main()
