"""The studies known by name, as the paper has them, and studies from TOML files."""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fallow.core import options
from fallow.core.errors import FallowError, unknown
from fallow.core.registry import Registry
from fallow.study.plan import PLAN_FILE, Cell, Plan

WALKER, CHEETAH = "walker-walk", "cheetah-run"
PERIODS_FRAMES = (10_000, 20_000, 40_000, 60_000, 80_000)
LONG_WINDOW = "recency:window_transitions=20000"
PAIR = ("passive", "recency")
READING_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "damage": ("actuator",),
    "damping": ("draw_frames", "std"),
    "friction": ("draw_frames", "std"),
    "reservoir": ("unit", "stretch_transitions"),
    "wmar": ("long_transitions",),
}
"""Options by which one reads what the paper leaves open (docs/fidelity.md)."""

STUDIES: Registry[Plan] = Registry("study")


def _add(name: str, *cells: Cell, **numbers: int | str | tuple[int, ...]) -> None:
    STUDIES.add(name, Plan(name, cells, **numbers))  # type: ignore[arg-type]


def _recurring(periods: Sequence[int] = PERIODS_FRAMES) -> tuple[str, ...]:
    return tuple(f"recurring:period_frames={period}" for period in periods)


_add(
    "table1",
    Cell(
        WALKER,
        "dreamer",
        ("none", "gain", "damage", "recurring"),
        ("passive", "recency", "graded", "wmar"),
    ),
)
_add(
    "table2",
    Cell(
        WALKER,
        "dreamer",
        ("none", "gain", "recurring"),
        ("passive", "recency", "reservoir", "reset"),
        trunk_set="B",
    ),
)
_add(
    "table3",
    Cell(CHEETAH, "dreamer", ("none", "damage", "recurring"), (*PAIR, "wmar")),
    Cell(WALKER, "tdmpc", ("none", "damage", "recurring"), PAIR),
    Cell(WALKER, "dreamer", ("none", "damping", "friction"), PAIR),
)
_add("recurrence", Cell(WALKER, "dreamer", ("none", *_recurring(), "gain"), PAIR))
_add(
    "magnitude",
    Cell(
        WALKER,
        "dreamer",
        ("none", "gain:g=1.0", "gain:g=0.9", "gain:g=0.7", "gain", "gain:g=0.3"),
        PAIR,
    ),
    Cell(WALKER, "dreamer", ("none", "gain:g=0.6", "gain"), PAIR, trunk_set="B"),
)
_add(
    "window",
    Cell(WALKER, "dreamer", ("none", *_recurring()), (*PAIR, LONG_WINDOW), "B"),
)
_add(
    "selector",  # the 24 histories of the paper's Section VI-D, and their returns
    Cell(
        WALKER,
        "dreamer",
        (*_recurring((20_000, 60_000, 80_000)), "gain"),
        PAIR,
    ),
    Cell(WALKER, "dreamer", ("gain:g=0.6",), PAIR, trunk_set="B"),
)
_add(
    "online",  # decisions made while training; the last two conditions tuned nothing
    Cell(
        WALKER,
        "dreamer",
        (
            *("none", "gain", "damage", "recurring"),
            *("gain:g=0.7", "recurring:period_frames=40000"),
        ),
        (
            *("passive", "recency", "reset", "wmar", "matched:beta=0.1"),
            *("adaptive:labels=true", "adaptive"),
        ),
    ),
    seeds=(5, 6, 7, 8, 9),
)
# for two cores in minutes, its trunks come with the package (tools/demo_trunks.py); an
# episode is 1,000 frames of this agent
_add(
    "demo",  # one change that contradicts old data, one that returns to it
    Cell(
        "cartpole-swingup",
        "tdmpc",
        ("reversal", "recurring:period_frames=1000"),
        ("passive", "reset", "adaptive:kappa_transitions=50"),
    ),
    preset="tiny:batch=32",
    seeds=(4, 5, 6, 7, 8),
    trunk_frames=20_000,
    branch_frames=4_000,
    shift_frame=0,
    evaluate_frames=2_000,
    n_episodes=1,
    save_frames=4_000,
    capacity_transitions=20_000,
    seeds_per_fleet=5,  # so that little is compiled
)


def find_plan(name: str, preset: str | None = None, seeds: str | None = None) -> Plan:
    """A named study, or a file's; with another preset, or with some of its seeds only.

    A file is TOML, or the `plan.json` of another study.

    Raises:
        FallowError: no such study, a file that cannot be read, or seeds it has not.
    """
    is_file = name.endswith(".toml") or Path(name).is_file()
    if Path(name).name == PLAN_FILE:
        plan = Plan.read(Path(name).parent)
    elif is_file or name in STUDIES:
        plan = read_toml(name) if is_file else STUDIES[name]
    else:
        if (Path(name) / PLAN_FILE).is_file():
            raise FallowError(
                f"{name} is the folder of a study; resume it with: fallow study "
                f"--resume {name}"
            )
        error = unknown("study", name, STUDIES)
        raise FallowError(f"{error}; or give a .toml file")
    if preset is not None:
        plan = dataclasses.replace(plan, preset=preset)
    return plan if seeds is None else part(plan, options.seeds(seeds))


def is_like(plan: Plan, name: str, *apart: str) -> bool:
    """Whether a plan is a named study's but for its preset, seeds and device.

    And but for what else is set `apart`.
    """
    free = ("preset", "seeds", "device", "seeds_per_fleet", *apart)
    chosen = {field: getattr(plan, field) for field in free}
    return dataclasses.replace(STUDIES[name], **chosen) == plan


def held_study(plan: Plan) -> str:
    """The named study that a plan is, or holds under another name; else its own name.

    It holds one when it has all its conditions and rules in some reading, or more, and
    its protocol. Of several held ones it is the largest.
    """
    if plan.name in STUDIES:
        return plan.name
    pairs, sizes = _pairs(plan), {}
    free = ("name", "cells", "save_frames", "offset_frames")
    for name, known in STUDIES.items():
        if _pairs(known) <= pairs and is_like(plan, name, *free):
            sizes[name] = len(_pairs(known))
    return max(sizes, key=sizes.__getitem__, default=plan.name)


def paper_text(text: str) -> str:
    """A condition or rule as the paper names it, whatever our reading of it."""
    try:
        name, given = options.parse(text)
    except FallowError:  # of another version, or of somebody else
        return text
    free = READING_OPTIONS.get(name, ())
    kept = {key: value for key, value in given.items() if key not in free}
    return options.render(name, kept)


def _pairs(plan: Plan) -> set[tuple[str, ...]]:
    """Each rule under each condition of a task, an agent and a set of trunks."""
    return {
        (cell.task, cell.agent, cell.trunk_set, paper_text(condition), paper_text(rule))
        for cell in plan.cells
        for condition in cell.conditions
        for rule in cell.rules
    }


def part(plan: Plan, seeds: Sequence[int]) -> Plan:
    """The part of a plan with some of its seeds, all conditions and all rules."""
    for seed in seeds:
        if seed not in plan.seeds:
            known = ", ".join(str(one) for one in plan.seeds)
            raise FallowError(
                f"study '{plan.name}' has no seed {seed}; its seeds are {known}. For "
                "others, run a copy of its plan.json with other seeds"
            )
    return dataclasses.replace(plan, seeds=tuple(seeds))


def read_toml(path: str | Path) -> Plan:
    """A study from a file: the fields of `Plan`, and a `[[cells]]` table for each cell.

    Raises:
        FallowError: there is no such file, or what it says is unknown or impossible.
    """
    path = Path(path)
    if not path.is_file():
        raise FallowError(f"there is no study file at {path}")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FallowError(f"{path} cannot be read as TOML: {error}") from None
    try:
        return Plan.from_content(content)
    except FallowError as error:
        raise FallowError(f"{path}: {error}") from None
