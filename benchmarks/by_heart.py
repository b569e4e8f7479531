"""What a rule keeps, a model may learn by heart: its error there and elsewhere.

    python benchmarks/by_heart.py                # four rules, ten minutes on two cores
    python benchmarks/by_heart.py --rules passive reservoir:unit=chunk
    python benchmarks/by_heart.py --after tiny:model_rate=3e-4   # learns more slowly

The same agents train under `passive`, then learn from the same history under each rule
in turn, without living on. After that every chunk of the history is shown to the model
once: its mean error on what the rule let it see and on what no rule but `passive` did.
The imagined return is what the policy expects, the evaluation what it gets.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from forms import shown, take_up, train_until  # the benchmark beside this one

from fallow.agents.compiling import keep_compiled
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.programs import Shards
from fallow.core.records import Branch
from fallow.replay.sampler import Sampler
from fallow.replay.spans import overlaps

RULES = (
    "passive",
    "recency:window_transitions=2048",
    "reservoir:budget_transitions=2048,unit=chunk",
    "reservoir:budget_transitions=2048,unit=chunk,stretch_transitions=512",
)


def fleet_of(given: argparse.Namespace, preset: str) -> Fleet:
    agent = build_agent(given.task, preset=preset)
    return Fleet(given.task, agent, [Branch(seed) for seed in range(given.seeds)])


def learned(given: argparse.Namespace, rule: str, state: Shards, folder: Path) -> Fleet:
    """The same learners, after so many updates under a rule."""
    fleet = fleet_of(given, given.after or given.preset)
    take_up(fleet, state, folder)
    for sampler in fleet.buffer.samplers:
        sampler.set_rule(rule)
    fleet.learners.learn(given.updates)
    fleet.learners.sweep()
    return fleet


def seen(sampler: Sampler) -> np.ndarray:
    """Which of the finished chunks the rule lets the model see any step of."""
    slots = sampler.ledger.slots(finished=True)
    out = np.zeros(len(slots), bool)
    for spans in sampler.parts():
        out[overlaps(sampler.ledger.chunk_spans(slots), spans)[0]] = True
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="walker-walk")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--after", help="preset that learns under a rule, if another")
    parser.add_argument("--rules", nargs="+", default=RULES)
    parser.add_argument("--seeds", type=int, default=5, help="how many, two or more")
    parser.add_argument("--frames", type=int, default=40_000, help="of life before")
    parser.add_argument("--updates", type=int, default=3_000, help="under each rule")
    parser.add_argument("--cache", help="folder of the compilation cache")
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error("give two seeds or more")
    keep_compiled(given.cache, trusted=True)
    with tempfile.TemporaryDirectory() as name:
        state = train_until(fleet_of(given, given.preset), given.frames, Path(name))
        fleets = {rule: learned(given, rule, state, Path(name)) for rule in given.rules}
    sampled = {
        rule: [seen(sampler) for sampler in fleet.buffer.samplers]
        for rule, fleet in fleets.items()
    }
    elsewhere = [
        ~np.any([mask for mask in masks if not mask.all()], axis=0)
        for masks in zip(*sampled.values(), strict=True)
    ]
    print(f"{given.after or given.preset}, {given.task}, {given.seeds} seeds:")
    print(
        "| rule | error on what is sampled | elsewhere | imagined return | evaluation |"
    )
    print("| --- | --- | --- | --- | --- |")
    for rule, fleet in fleets.items():
        errors = [
            sampler.ledger.error[sampler.ledger.slots(finished=True)]
            for sampler in fleet.buffer.samplers
        ]
        pairs = list(zip(errors, sampled[rule], elsewhere, strict=True))
        cells = (
            np.array([values[mask].mean() for values, mask, _ in pairs]),
            np.array([values[mask].mean() for values, _, mask in pairs]),
            np.asarray(fleet.learners.metrics["imagined/return"]),
            fleet.evaluate().mean(-1),
        )
        print(
            f"| `{rule}` | "
            + " | ".join(shown(cell, digits=1) for cell in cells)
            + " |"
        )


if __name__ == "__main__":
    main()
