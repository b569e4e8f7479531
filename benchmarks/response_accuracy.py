"""Where `fallow diagnose` is right and where it is not.

    python benchmarks/response_accuracy.py            # Markdown tables, half an hour
    python benchmarks/response_accuracy.py --seeds 2  # smaller ones
    python benchmarks/response_accuracy.py --json     # the numbers
    python benchmarks/response_accuracy.py --studies results/walker-lean

Every history is what `fallow simulate` writes: 150 episodes of a scripted policy whose
amplitude drifts. Rows of `example` come from `fallow.diagnosis.example`, whose truth is
known without physics; there the policy learns to push along with the velocity, or
against it. With `--studies` the histories are instead those of real learners: each
`passive` branch of a study with its trunk in front.

A change counts as found if one was put within two episodes of it. *Location* is the
distance in the end; *delay* the number of episodes after the change that an analysis of
the past needs to put it there. The tables are: the selector, with its segments; the
abrupt changes and the advice that rest on them; the two readings of the z-test; the
three variants of the response.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from simulated_logs import simulated_logs

from fallow.diagnosis import VARIANTS, Example, example
from fallow.diagnosis.decision import AUC_GATE, MAGNITUDE_GATE
from fallow.diagnosis.pipeline import Diagnosis, diagnose_log
from fallow.diagnosis.recommendation import recommendation
from fallow.diagnosis.truth import NEAR, decision_delay, location_error, n_false
from fallow.logs.joining import read_joined
from fallow.logs.log import Log

Ways = dict[tuple[str, str], list[dict[str, Any]]]
"""Results of one case by variant and by what makes a segment stale."""
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
    """Record the histories of one condition and diagnose each in every way."""
    task, condition, n_seeds = case
    if task == "example":
        logs = [example(EXAMPLES[condition], seed) for seed in range(n_seeds)]
    else:
        logs = simulated_logs(task, condition, N_EPISODES, n_seeds)
    return [
        measured
        for seed, log in enumerate(logs)
        for measured in measures_of(log, (task, condition), seed)
    ]


def learners(study: Path) -> Iterator[list[dict[str, Any]]]:
    """The same for the `passive` branches of a study, each behind its trunk."""
    plan = json.loads((study / "plan.json").read_text())
    for branch in plan["branches"]:
        ends = [study / "histories" / f"{branch[k]}.fallow" for k in ("trunk", "id")]
        if branch["rule"] == "passive" and all(end.exists() for end in ends):
            case = (study.name, branch["condition"])
            yield measures_of(read_joined(*ends), case, branch["seed"])


def measures_of(log: Log, case: tuple[str, str], seed: int) -> list[dict[str, Any]]:
    ways = [(variant, "mean") for variant in VARIANTS] + [("joint", "any_joint")]
    return [
        {
            "case": list(case),
            "seed": seed,
            "variant": variant,
            "stale_by": stale_by,
            **measures(diagnose_log(log, variant, stale_by=stale_by)),
        }
        for variant, stale_by in ways
    ]


def measures(diagnosis: Diagnosis) -> dict[str, Any]:
    truth, decision = diagnosis.truth, diagnosis.decision
    assert truth is not None
    true = truth.change_points
    return {
        "n_changes": len(true),
        **placed(decision.change_points, true, ""),
        **placed([c.episode for c in diagnosis.changes], true, "abrupt_"),
        "delay": [decision_delay(decision.response, t) for t in true],
        "magnitude": decision.magnitude.value,
        "true_magnitude": truth.magnitude,
        "auc": decision.auc.value,
        "true_auc": truth.auc,
        "decision": decision.word,
        "by_truth": by_truth(truth.auc, truth.magnitude),
        "advice": recommendation(diagnosis),
        "changed": [joint.index for joint in diagnosis.joints if joint.changed],
        "joint_errors": joint_errors(diagnosis),
    }


def placed(found: Sequence[int], true: Sequence[int], prefix: str) -> dict[str, Any]:
    errors = [location_error(found, at) for at in true]
    located = [abs(e) for e in errors if e is not None and abs(e) <= NEAR]
    return {
        f"{prefix}n_found": len(located),
        f"{prefix}n_false": n_false(found, true),
        f"{prefix}location": located,
    }


def joint_errors(diagnosis: Diagnosis) -> list[float]:
    """|share lost - share of the gain lost| of joints that changed at a true change."""
    truth, gain = diagnosis.truth, diagnosis.log.gain
    if truth is None or gain is None:
        return []
    errors = []
    for joint in diagnosis.joints:
        near = [t for t in truth.change_points if abs(t - (joint.episode or 0)) <= NEAR]
        if joint.changed and joint.lost is not None and near:
            before, after = gain[near[0] - 1, joint.index], gain[near[0], joint.index]
            if before > 0:
                errors.append(abs(joint.lost - (1 - after / before)))
    return errors


def by_truth(auc: float | None, magnitude: float | None) -> str:
    """What the same gates say of the true numbers."""
    beyond = auc is not None and auc >= AUC_GATE
    return "discard" if beyond and (magnitude or 0) >= MAGNITUDE_GATE - 1e-9 else "keep"


def history(results: list[dict[str, Any]]) -> str:
    return "{}, `{}`".format(*results[0]["case"])


def count(results: list[dict[str, Any]], name: str, value: str) -> str:
    return f"{sum(r[name] == value for r in results)}/{len(results)}"


def found(results: list[dict[str, Any]], prefix: str = "") -> str:
    n_changes = sum(r["n_changes"] for r in results)
    n_found = sum(r[f"{prefix}n_found"] for r in results)
    return f"{n_found}/{n_changes}" if n_changes else "–"


def flat(results: list[dict[str, Any]], name: str) -> list[Any]:
    return [value for r in results for value in r[name]]


def selector_row(ways: Ways) -> list[str]:
    results = ways["joint", "mean"]
    return [
        history(results),
        found(results),
        str(sum(r["n_false"] for r in results)),
        spread(flat(results, "location"), "{:.0f}"),
        spread(flat(results, "delay"), "{:.0f}"),
        spread([r["auc"] for r in results], "{:.2f}"),
        spread([r["true_auc"] for r in results], "{:.2f}"),
        spread([r["magnitude"] for r in results], "{:.2f}"),
        spread([r["true_magnitude"] for r in results], "{:.2f}"),
        count(results, "decision", "discard"),
        count(results, "by_truth", "discard"),
    ]


def abrupt_row(ways: Ways) -> list[str]:
    results = ways["joint", "mean"]
    advice = (count(results, "advice", word) for word in ("discard", "check", "keep"))
    return [
        history(results),
        found(results, "abrupt_"),
        str(sum(r["abrupt_n_false"] for r in results)),
        spread(flat(results, "abrupt_location"), "{:.0f}"),
        spread([len(r["changed"]) for r in results], "{:.0f}"),
        spread(flat(results, "joint_errors"), "{:.2f}"),
        *advice,
    ]


def stale_row(ways: Ways) -> list[str]:
    cells = [history(ways["joint", "mean"])]
    for stale_by in ("any_joint", "mean"):
        results = ways["joint", stale_by]
        cells += [
            spread([r["auc"] for r in results], "{:.2f}"),
            spread([r["magnitude"] for r in results], "{:.2f}"),
            count(results, "decision", "discard"),
        ]
    true = spread([r["true_auc"] for r in ways["joint", "mean"]], "{:.2f}")
    return [*cells, true, count(ways["joint", "mean"], "by_truth", "discard")]


def variant_row(ways: Ways) -> list[str]:
    cells = [history(ways["joint", "mean"])]
    for variant in VARIANTS:
        results = ways[variant, "mean"]
        n_false = sum(r["n_false"] for r in results)
        discard = count(results, "decision", "discard")
        cells.append(f"{found(results)}, {n_false}, {discard}")
    return cells


def spread(values: list[Any], form: str) -> str:
    """Median and, where they differ, range of what is defined."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    low, middle, high = (form.format(f(known)) for f in (min, statistics.median, max))
    return middle if low == high else f"{middle} ({low} to {high})"


TABLES: tuple[tuple[Callable[[Ways], list[str]], tuple[str, ...]], ...] = (
    (
        selector_row,
        (
            *("history", "changes found", "false changes", "location, episodes"),
            *("delay, episodes", "AUC", "true AUC", "m_hat", "true m", "discard"),
            "discard by truth",
        ),
    ),
    (
        abrupt_row,
        (
            *("history", "abrupt changes found", "false", "location, episodes"),
            *("joints changed", "error of a joint's loss"),
            *("advice: discard", "check", "keep"),
        ),
    ),
    (
        stale_row,
        (
            *("history", "any joint: AUC", "m_hat", "discard"),
            *("mean: AUC", "m_hat", "discard", "true AUC", "discard by truth"),
        ),
    ),
    (
        variant_row,
        ("history", *(f"`{v}`: found, false, discard" for v in VARIANTS)),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the numbers only")
    parser.add_argument("--studies", nargs="+", type=Path, help="folders of studies")
    chosen = parser.parse_args()
    if chosen.studies:
        parts = [part for study in chosen.studies for part in learners(study)]
    else:
        cases = [(*case, chosen.seeds) for case in CASES]
        with ProcessPoolExecutor(chosen.processes) as pool:
            parts = list(pool.map(one, cases))
    results = [result for part in parts for result in part]
    if chosen.json:
        print(json.dumps(results, indent=1))
    else:
        show(results)


def show(results: list[dict[str, Any]]) -> None:
    cases: dict[tuple[str, ...], Ways] = {}
    for result in results:
        ways = cases.setdefault(tuple(result["case"]), {})
        ways.setdefault((result["variant"], result["stale_by"]), []).append(result)
    for row, head in TABLES:
        print("| " + " | ".join(head) + " |")
        print("|" + " --- |" * len(head))
        for ways in cases.values():
            print("| " + " | ".join(row(ways)) + " |")
        print()


if __name__ == "__main__":
    main()
