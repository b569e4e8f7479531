"""Where the actuator response K tells the truth and where it does not.

    python benchmarks/response_accuracy.py            # two Markdown tables, 15 minutes
    python benchmarks/response_accuracy.py --seeds 2  # a smaller one
    python benchmarks/response_accuracy.py --json     # the numbers

Every history is what `fallow simulate` writes: 150 episodes of a scripted policy whose
amplitude drifts. Rows of `example` come from `fallow.diagnosis.example`, whose truth is
known without physics; there the policy learns to push along with the velocity, or
against it.

A change counts as found if one was put within two episodes of it. *Location* is how far
off it was put in the end; *delay* how many episodes after the change had to be seen
before any analysis of the episodes so far put it there. The first table is of the
variant `joint`, the second sets the three beside each other.
"""

import argparse
import json
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from fallow.diagnosis import VARIANTS, Example, example
from fallow.diagnosis.decision import AUC_GATE, MAGNITUDE_GATE
from fallow.diagnosis.pipeline import Diagnosis, diagnose_log
from fallow.diagnosis.truth import NEAR, decision_delay, location_error, n_false
from fallow.logs.readers import read_log
from fallow.logs.simulate import simulate

N_EPISODES = 150
CASES = (
    ("walker-walk", "none"),
    ("walker-walk", "gain"),
    ("walker-walk", "gain:g=0.7"),
    ("walker-walk", "gain:g=0.9"),
    ("walker-walk", "damage"),
    ("walker-walk", "recurring"),
    ("cheetah-run", "none"),
    ("cheetah-run", "gain"),
    ("cheetah-run", "damage"),
    ("cheetah-run", "recurring"),
    ("example", "none, the policy learns to push along"),
    ("example", "gain, the policy learns to brake"),
)
EXAMPLES = {
    CASES[-2][1]: Example((1.0,), (), N_EPISODES, drag=0.5, feedback=0.8),
    CASES[-1][1]: Example(n_episodes=N_EPISODES, drag=0.5, feedback=-0.8),
}


def one(case: tuple[str, str, int]) -> list[dict[str, Any]]:
    """Record one history and diagnose it by every variant."""
    task, condition, seed = case
    if task == "example":
        log = example(EXAMPLES[condition], seed)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "history.fallow"
            simulate(task, condition, N_EPISODES, seed, path)
            log = read_log(path)
    return [
        {
            "task": task,
            "condition": condition,
            "seed": seed,
            "variant": variant,
            **measures(diagnose_log(log, variant)),
        }
        for variant in VARIANTS
    ]


def measures(diagnosis: Diagnosis) -> dict[str, Any]:
    truth, decision = diagnosis.truth, diagnosis.decision
    assert truth is not None
    found = decision.change_points
    errors = [location_error(found, true) for true in truth.change_points]
    located = [abs(e) for e in errors if e is not None and abs(e) <= NEAR]
    return {
        "n_changes": len(truth.change_points),
        "n_found": len(located),
        "n_false": n_false(found, truth.change_points),
        "location": located,
        "delay": [decision_delay(decision.response, t) for t in truth.change_points],
        "magnitude": decision.magnitude.value,
        "true_magnitude": truth.magnitude,
        "auc": decision.auc.value,
        "true_auc": truth.auc,
        "decision": decision.word,
        "by_truth": by_truth(truth.auc, truth.magnitude),
    }


def by_truth(auc: float | None, magnitude: float | None) -> str:
    """What the same gates say of the true numbers."""
    beyond = auc is not None and auc >= AUC_GATE
    return "discard" if beyond and (magnitude or 0) >= MAGNITUDE_GATE - 1e-9 else "keep"


def row(results: list[dict[str, Any]]) -> list[str]:
    first, n = results[0], len(results)
    n_changes = sum(r["n_changes"] for r in results)
    locations = [e for r in results for e in r["location"]]
    delays = [d for r in results for d in r["delay"] if d is not None]
    return [
        f"{first['task']}, `{first['condition']}`",
        f"{sum(r['n_found'] for r in results)}/{n_changes}" if n_changes else "–",
        str(sum(r["n_false"] for r in results)),
        spread(locations, "{:.0f}"),
        spread(delays, "{:.0f}"),
        spread([r["auc"] for r in results], "{:.2f}"),
        spread([r["true_auc"] for r in results], "{:.2f}"),
        spread([r["magnitude"] for r in results], "{:.2f}"),
        spread([r["true_magnitude"] for r in results], "{:.2f}"),
        f"{sum(r['decision'] == 'discard' for r in results)}/{n}",
        f"{sum(r['by_truth'] == 'discard' for r in results)}/{n}",
    ]


def spread(values: list[Any], form: str) -> str:
    """Median and, where they differ, range of what is defined."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    low, middle, high = (form.format(f(known)) for f in (min, statistics.median, max))
    return middle if low == high else f"{middle} ({low} to {high})"


HEAD = (
    "history",
    "changes found",
    "false changes",
    "location, episodes",
    "delay, episodes",
    "AUC",
    "true AUC",
    "m_hat",
    "true m",
    "discard",
    "discard by truth",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the numbers only")
    chosen = parser.parse_args()
    cases = [(*case, seed) for case in CASES for seed in range(chosen.seeds)]
    with ProcessPoolExecutor(chosen.processes) as pool:
        results = [result for found in pool.map(one, cases) for result in found]
    if chosen.json:
        print(json.dumps(results, indent=1))
    else:
        show(results)


def show(results: list[dict[str, Any]]) -> None:
    groups = {
        (*case, variant): [
            r
            for r in results
            if (r["task"], r["condition"], r["variant"]) == (*case, variant)
        ]
        for case in CASES
        for variant in VARIANTS
    }
    print("| " + " | ".join(HEAD) + " |")
    print("|" + " --- |" * len(HEAD))
    for case in CASES:
        print("| " + " | ".join(row(groups[*case, "joint"])) + " |")
    print()
    heads = [f"`{v}`: found, false, discard" for v in VARIANTS]
    print("| history | " + " | ".join(heads) + " |")
    print("|" + " --- |" * (1 + len(VARIANTS)))
    for case in CASES:
        rows = [row(groups[*case, variant]) for variant in VARIANTS]
        short = [f"{r[1]}, {r[2]}, {r[9]}" for r in rows]
        print(f"| {rows[0][0]} | " + " | ".join(short) + " |")


if __name__ == "__main__":
    main()
