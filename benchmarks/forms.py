"""Learning from the same data in float32, in bfloat16, and with a GPU's kernels.

    python benchmarks/forms.py --preset lean --seeds 10 --updates 3000    # on a GPU
    python benchmarks/forms.py --preset tiny --seeds 4 --updates 300      # on a CPU

Every form begins with the same learners and makes the same updates: the same replay, in
the same batches, with the same noise. The replay has the random steps before learning
or, with `--frames`, so many frames of training in float32. Results differ by rounding
and by what rounding grows into, so single seeds differ, but their mean must not. Shown
are the metrics of the last third of all updates: the mean over seeds in float32, then
the difference of the other forms, with the standard error over seeds. A form that
learns worse shows it in the losses of the model and in the return that its policy
imagines, without the luck of exploration. `tests/agents/test_dreamer_learning.py`
compares the last two in the same way.
"""

import argparse
import csv
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import jax
import numpy as np

from fallow.agents import AGENTS
from fallow.agents.compiling import keep_compiled
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.programs import Shards
from fallow.core import options
from fallow.core.records import Branch
from fallow.report.cells import MeanCell
from fallow.study.summary import summarise

EXACT = "float32"
"""The form that others are compared with."""
FORMS = {
    EXACT: ("float32", "off"),
    "bfloat16": ("bfloat16", "off"),
    "kernels": ("bfloat16", "default"),
}
"""Type of the products, and `FALLOW_KERNELS`."""


@dataclass(frozen=True)
class Comparison:
    """What every form begins with, and how much it learns."""

    task: str
    agent: str
    preset: str
    seeds: int
    """How many."""
    frames: int
    """Of training before, if there are more than those of random actions."""
    updates: int
    every: int
    """Updates between two looks at the metrics."""


def fleet_of(given: Comparison, form: str) -> Fleet:
    """New learners that compute in a form, while the next one is not asked for."""
    compute, os.environ["FALLOW_KERNELS"] = FORMS[form]
    name, changes = options.parse(given.preset)
    preset = options.render(name, {**changes, "compute": compute})
    agent = build_agent(given.task, given.agent, preset)
    return Fleet(given.task, agent, [Branch(seed) for seed in range(given.seeds)])


def train_until(fleet: Fleet, frames: int, folder: Path) -> Shards:
    """The learners after so many frames; their replay is in `folder`."""
    fleet.run(frames)
    for branch in range(len(fleet.branches)):
        fleet.buffer.save(branch, folder / str(branch))
    return fleet.learners.state


def resume(fleet: Fleet, state: Shards, folder: Path) -> None:
    """Continue from what `train_until` left."""
    fleet.learners.state = fleet.programs.copied(state)
    for branch in range(len(fleet.branches)):
        fleet.buffer.load(branch, folder / str(branch))


def curves(
    given: Comparison, form: str, state: Shards, folder: Path
) -> dict[str, np.ndarray]:
    """(n, seeds) each metric, every so many updates."""
    fleet = fleet_of(given, form)
    resume(fleet, state, folder)
    begin, seen = time.perf_counter(), []
    for _ in range(given.updates // given.every):
        fleet.learners.learn(given.every)
        seen.append(fleet.learners.metrics)
    print(f"{form}: {time.perf_counter() - begin:.0f} s, compiling included")
    return {name: np.array([metrics[name] for metrics in seen]) for name in seen[0]}


def compare(given: Comparison, forms: Sequence[str]) -> list[dict[str, np.ndarray]]:
    """The curves of each form, from the replay that the first one collected."""
    with tempfile.TemporaryDirectory() as name:
        fleet = fleet_of(given, forms[0])
        prefill = fleet.schedule.prefill_steps * fleet.frames_per_step
        state = train_until(fleet, max(prefill, given.frames), Path(name))
        return [curves(given, form, state, Path(name)) for form in forms]


def late(curve: np.ndarray) -> np.ndarray:
    """(seeds,) mean of the last third."""
    return curve[2 * len(curve) // 3 :].mean(0)


def shown(values: np.ndarray, digits: int, signed: bool = False) -> str:
    """Mean over seeds, with the standard error."""
    return MeanCell.of(summarise(values.tolist()), digits, signed).text()


def write(path: str, every: int, found: dict[str, dict[str, np.ndarray]]) -> None:
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["form", "metric", "seed", "update", "value"])
        for form, metrics in found.items():
            for name, curve in metrics.items():
                for (at, seed), value in np.ndenumerate(curve):
                    table.writerow([form, name, seed, every * (at + 1), f"{value:.6g}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="walker-walk")
    parser.add_argument("--agent", default="dreamer", choices=list(AGENTS))
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--seeds", type=int, default=4, help="how many, two or more")
    parser.add_argument("--frames", type=int, default=0, help="of training before")
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--every", type=int, default=50, help="updates between looks")
    parser.add_argument("--cache", help="folder of the compilation cache")
    parser.add_argument("--csv", help="write all curves here")
    given = parser.parse_args()
    if given.seeds < 2 or not 0 < given.every <= given.updates:
        parser.error("give two seeds or more, and at least as many updates as --every")
    keep_compiled(given.cache, trusted=True)
    on_gpu = jax.default_backend() == "gpu"
    forms = [form for form in FORMS if on_gpu or form != "kernels"]
    chosen = {field.name: getattr(given, field.name) for field in fields(Comparison)}
    found = dict(zip(forms, compare(Comparison(**chosen), forms), strict=True))
    if given.csv:
        write(given.csv, given.every, found)
    others = forms[1:]
    print(f"| {given.agent} {given.preset}, {given.seeds} seeds | {EXACT} |", end="")
    print("".join(f" {form} |" for form in others))
    print("| --- |" + " --- |" * len(found))
    for name, exact in found[EXACT].items():
        apart = [late(found[form][name]) - late(exact) for form in others]
        cells = "".join(f" {shown(value, digits=4, signed=True)} |" for value in apart)
        print(f"| {name} | {late(exact).mean():.4f} |{cells}")


if __name__ == "__main__":
    main()
