"""Parts of one plan with different seeds, joined to one study."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError
from fallow.study.store import (
    Study,
    difference,
    is_done,
    link,
    new_folder,
    read_study,
    write_plan,
)
from fallow.study.tables import copy_tables


def merge(folders: Sequence[str | Path], out: str | Path) -> Study:
    """Join finished parts in a new folder; the parts stay as they are.

    Raises:
        FallowError: fewer than two parts, parts of other plans, seeds in two parts, a
            part that is not finished, or a folder that is not empty.
    """
    if len(folders) < 2:
        raise FallowError("name two parts or more: fallow study merge A B --out C")
    out = new_folder(out)
    parts = [read_study(folder) for folder in folders]
    _check(parts)
    seeds = sorted(seed for part in parts for seed in part.plan.seeds)
    plan = dataclasses.replace(parts[0].plan, seeds=tuple(seeds))
    branches = _ordered(plan.branches(), [b for part in parts for b in part.branches])
    order = {branch.id: index for index, branch in enumerate(branches)}
    fleets = sorted(
        (fleet for part in parts for fleet in part.fleets),
        key=lambda fleet: order[fleet.branches[0].id],
    )
    study = Study(
        out,
        plan,
        _ordered(plan.trunks(), [t for part in parts for t in part.trunks]),
        branches,
        tuple(fleets),
        out.parent / "trunks",
        _made_with(parts),
    )
    write_plan(study)
    copy_tables(parts, study)
    for part in parts:
        for history in (part.folder / "histories").glob("*.fallow"):
            link(history, study.folder / "histories" / history.name)
    return study


def _ordered(planned: Sequence[Any], found: Sequence[Any]) -> tuple[Any, ...]:
    """What parts have, in the order of the joined plan; ids are the parts'."""

    def key(one: Any) -> tuple[Any, ...]:
        names = ("task", "agent", "training_seed", "condition", "rule")
        return tuple(getattr(one, name, None) for name in names)

    by_key = {key(one): one for one in found}
    return tuple(by_key[key(one)] for one in planned)


def _made_with(parts: Sequence[Study]) -> dict[str, Any]:
    """What made the parts; where they differ, all of it, in their order."""

    def all_of(found: Iterable[str | None]) -> str | None:
        return ", ".join(dict.fromkeys(value for value in found if value)) or None

    all_versions = [part.made_with.get("versions") or {} for part in parts]
    names = dict.fromkeys(name for versions in all_versions for name in versions)
    return {
        "versions": {
            n: all_of(versions.get(n) for versions in all_versions) for n in names
        },
        "git_commit": all_of(part.made_with.get("git_commit") for part in parts),
    }


def _check(parts: Sequence[Study]) -> None:
    first = parts[0]
    seen: dict[int, Path] = {}
    for part in parts:
        same = dataclasses.replace(part.plan, seeds=first.plan.seeds)
        if same != first.plan:
            raise FallowError(
                f"{part.folder} is not a part of the same plan as {first.folder}: "
                f"{difference(first.plan, same)}"
            )
        for seed in part.plan.seeds:
            if seed in seen:
                raise FallowError(
                    f"seed {seed} is in {seen[seed]} and in {part.folder}; leave one "
                    "of them out"
                )
            seen[seed] = part.folder
        for fleet in part.fleets:
            if not is_done(part.fleet_folder(fleet)):
                raise FallowError(
                    f"{part.folder} is not finished: fallow study --resume "
                    f"{part.folder}"
                )
