"""A study's folder: the plan with its fleets, tables, histories, and what is done.

plan.json         the plan, ids, fleets, versions, git commit
results.csv       every evaluation so far; results.parquet at the end
trunks.csv        the same of the trunks
histories/        <branch id>.fallow and <trunk id>.fallow
fleets/<id>/      a fleet in training: table, checkpoint, status; prefixes/ the same of
                  what its branches share; done.json at its end
"""

import dataclasses
import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fallow.core import files
from fallow.core.errors import FallowError
from fallow.core.legacy import ALGORITHM
from fallow.core.lock import is_lock
from fallow.study.fleets import Cost, PlannedFleet, check_fit, fleets_of
from fallow.study.plan import PLAN_FILE, Plan, read_plan_file
from fallow.study.planned import PlannedBranch, PlannedTrunk
from fallow.study.provenance import git_commit, versions

TABLE, TRUNK_TABLE, STATUS = "results.csv", "trunks.csv", "status.json"
DONE, FAILED, LOCK = "done.json", "failed.json", "lock"
STAGES = ("trunks", "prefixes", "branches")
STATUS_NUMBERS = (
    "frame",
    "until_frame",
    "n_updates",
    "session_updates",
    "session_s",
    "time",
)
MADE_WITH = ("versions", "git_commit")
ID = re.compile(r"[0-9a-f]{12}")


@dataclasses.dataclass(frozen=True)
class Study:
    """A plan at work in a folder."""

    folder: Path
    plan: Plan
    trunks: tuple[PlannedTrunk, ...]
    branches: tuple[PlannedBranch, ...]
    """With the ids that they were started with, in the plan's order, as trunks are."""
    fleets: tuple[PlannedFleet, ...]
    store: Path
    """Where trunks are kept and shared."""
    made_with: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """`versions` and `git_commit` of what began it; empty: not known."""

    def fleet_folder(self, fleet: PlannedFleet) -> Path:
        """The folder of a fleet in training."""
        return self.folder / "fleets" / fleet.id

    @property
    def table(self) -> Path:
        """All evaluations so far."""
        return self.folder / TABLE

    @property
    def lock(self) -> Path:
        """Held by the process that runs the study."""
        return self.folder / LOCK


def open_study(
    plan: Plan, folder: str | Path, store: str | Path | None = None
) -> Study:
    """Start a study in a folder, or resume the same one.

    Raises:
        FallowError: the folder is another study's.
    """
    folder = Path(folder)
    check_folder(folder)
    if (folder / PLAN_FILE).exists():
        found = read_study(folder, store)
        if found.plan != plan:
            raise FallowError(
                f"{folder} holds another study: {difference(plan, found.plan)}; choose "
                "another folder, or continue that study: fallow study --resume "
                f"{folder}"
            )
        return found
    members = (plan.trunks(), plan.branches(), fleets_of(plan))
    made_with = {"versions": versions(), "git_commit": git_commit()}
    study = Study(folder, plan, *members, _store(folder, store), made_with)
    check_fit(plan, study.fleets)
    write_plan(study)
    return study


def check_folder(folder: Path) -> None:
    """Raise if a folder holds files, none of which is a study's plan.

    Locks and unfinished files, as a killed start leaves them, do not count.
    """
    if not folder.exists() or (folder / PLAN_FILE).exists():
        return
    files.remove_leftovers(folder)
    found = [path.name for path in folder.iterdir() if not _is_scrap(path)]
    if found:
        raise FallowError(
            f"{folder} is not empty and holds no study (it has no {PLAN_FILE}, and "
            f"{', '.join(sorted(found)[:3])}); choose another folder"
        )


def _is_scrap(path: Path) -> bool:
    return is_lock(path) or files.is_leftover(path)


def new_folder(out: str | Path) -> Path:
    """A new or empty folder for a copy.

    Raises:
        FallowError: there is something in it.
    """
    out = Path(out)
    if out.exists() and any(out.iterdir()):
        raise FallowError(f"{out} is not empty; choose a new folder")
    return out


def read_study(folder: str | Path, store: str | Path | None = None) -> Study:
    """The study in a folder, with the fleets that it was started with.

    Raises:
        FallowError: there is none, or its plan.json cannot be read.
    """
    folder = Path(folder)
    content = read_plan_file(folder)
    plan = Plan.of_file(content, folder)
    try:
        trunks = _as_listed(plan.trunks(), content["trunks"])
        branches = _as_listed(plan.branches(), content["branches"])
        fleets = _fleets_as_listed(trunks, branches, content["fleets"])
        if not isinstance(content.get("store"), str | None):
            raise TypeError("the store of trunks is not a path")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FallowError(
            f"{folder / PLAN_FILE} was edited or written by another version of Fallow: "
            "its fleets are not those of its plan; begin in another folder"
        ) from None
    where = _store(folder, store or content.get("store"))
    made_with = {name: content.get(name) for name in MADE_WITH}
    return Study(folder, plan, trunks, branches, fleets, where, made_with)


def _as_listed(planned: Sequence[Any], listed: Any) -> tuple[Any, ...]:
    """Trunks or branches with the ids that a file lists; they depend on its version.

    Raises:
        ValueError: the file lists others.
    """
    found = []
    for one, entry in zip(planned, listed, strict=True):
        if (entry["task"], entry["agent"], entry["seed"]) != (
            one.task,
            one.agent,
            one.seed,
        ):
            raise ValueError("listed in another order")
        changes = {"id": _checked_id(entry["id"])}
        if "trunk" in entry:
            changes["trunk"] = _checked_id(entry["trunk"])
        found.append(dataclasses.replace(one, **changes))
    return tuple(found)


def _fleets_as_listed(
    trunks: Sequence[PlannedTrunk], branches: Sequence[PlannedBranch], listed: Any
) -> tuple[PlannedFleet, ...]:
    trunk_by_id = {trunk.id: trunk for trunk in trunks}
    branch_by_id = {branch.id: branch for branch in branches}
    return tuple(
        PlannedFleet(
            id=_checked_id(fleet["id"]),
            trunks=tuple(trunk_by_id[one] for one in fleet["trunks"]),
            branches=tuple(branch_by_id[one] for one in fleet["branches"]),
            cost=Cost(**fleet["cost"]),
        )
        for fleet in listed
    )


def _checked_id(text: Any) -> str:
    """An id, which becomes the name of a folder."""
    if not isinstance(text, str) or not ID.fullmatch(text):
        raise ValueError(f"{text!r} is not an id")
    return text


def write_plan(study: Study) -> None:
    """Write plan.json: the plan, ids, fleets and what made it."""
    content = {
        "algorithm": ALGORITHM,
        "plan": study.plan.content(),
        "trunks": [dataclasses.asdict(trunk) for trunk in study.trunks],
        "branches": [dataclasses.asdict(branch) for branch in study.branches],
        "fleets": [
            {
                "id": fleet.id,
                "trunks": [trunk.id for trunk in fleet.trunks],
                "branches": [branch.id for branch in fleet.branches],
                "cost": dataclasses.asdict(fleet.cost),
            }
            for fleet in study.fleets
        ],
        "store": _store_entry(study),
        **study.made_with,
    }
    write_json(study.folder / PLAN_FILE, content)


def difference(one: Plan, other: Plan) -> str:
    """The first field in which two plans differ, in words."""
    for field in dataclasses.fields(Plan):
        mine, yours = getattr(one, field.name), getattr(other, field.name)
        if mine != yours:
            if field.name == "cells":
                return "its tasks, agents, conditions or rules are others"
            return f"its {field.name} is {yours}, not {mine}"
    return "nothing"


# -------------------------------------------------------------------- what is done


def mark_done(folder: Path, **content: Any) -> None:
    """Mark a fleet as done, with a checksum of its table."""
    write_json(folder / DONE, {"table": _digest(folder / TABLE), **content})


def is_done(folder: Path) -> bool:
    """Whether a fleet is done and its table is what it wrote."""
    done = read_json(folder / DONE)
    table = folder / TABLE
    return bool(done) and table.is_file() and done.get("table") == _digest(table)


def link(source: Path, target: Path) -> None:
    """Put a file under another name as well, at once; copied where links are not."""
    with files.write_atomic(target) as part:
        try:
            os.link(source, part)
        except OSError:
            shutil.copyfile(source, part)


# -------------------------------------------------------------------- plain files


def write_json(path: Path, content: Any) -> None:
    """Replace a JSON file atomically."""
    files.write_text(path, json.dumps(content, indent=1))


def read_json(path: Path) -> dict[str, Any]:
    """The content of a file; empty if it is missing or damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def read_status(folder: Path) -> dict[str, Any]:
    """The status that a fleet wrote; empty if the file is missing or damaged."""
    status = read_json(folder / STATUS)
    spent = status.get("spent_s", {})
    good = (
        status.get("stage") in STAGES
        and all(_is_number(status.get(name)) for name in STATUS_NUMBERS)
        and isinstance(spent, dict)
        and all(
            isinstance(seconds, dict) and all(map(_is_number, seconds.values()))
            for seconds in spent.values()
        )
    )
    return status if good else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _store(folder: Path, store: str | Path | None) -> Path:
    return Path(store).absolute() if store else folder.absolute().parent / "trunks"


def _store_entry(study: Study) -> str | None:
    """The folder of trunks; None if it is next to the study, so that both can move."""
    is_beside = study.store == _store(study.folder, None)
    return None if is_beside else str(study.store)
