"""A study as the report reads it: its folder, with whatever is there by now."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.results import Evaluation, Label, read_results
from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import SHIFT_FRAME, Drift, Permanent, Recurring
from fallow.study import folder as study_folder
from fallow.study.statistics import Returns, returns_of

TABLE, PLAN, RUN = "results.csv", "plan.json", "run.json"
"""The last is what `fallow train` leaves, and no study."""


@dataclass(frozen=True)
class Planned(Label):
    """A branch that the plan asks for; what it does not say is empty."""

    id: str


@dataclass(frozen=True)
class Study:
    """Everything that a report is a function of."""

    name: str
    folder: Path
    rows: tuple[Evaluation, ...]
    plan: dict[str, Any]
    """What stands in its file: the plan, versions, …; empty where there is none."""
    shift_frame: int = SHIFT_FRAME
    """Since the branch point."""
    seeds: tuple[int, ...] | None = None
    """That should be there; None: the plan does not say."""
    planned: tuple[Planned, ...] = ()
    """Empty: the plan does not say."""
    histories: dict[str, Path] = field(default_factory=dict)
    """By the id of a branch or trunk."""
    trunk_sets: dict[str, str] = field(default_factory=dict)
    """The name of the set of each trunk id, where there are several."""
    until_frame: int | None = None
    """Since the branch point: later evaluations are left out; None: none are."""
    notes: tuple[str, ...] = ()
    """Sentences on what is odd about the folder."""

    @property
    def trunk_frames(self) -> int:
        """Frames before the branch point, by the rows themselves."""
        return max((row.frame - row.branch_frame for row in self.rows), default=0)

    def condition(self, text: str) -> Condition | None:
        """A condition of the table, its change where the plan puts it.

        One that says itself when it changes stays as it is. None where this version of
        Fallow knows no such condition.
        """
        try:
            own = Condition.parse(text)
        except FallowError:
            return None
        schedule = own.schedule
        if schedule.shift_frame != SHIFT_FRAME:
            return own
        if isinstance(schedule, Permanent | Recurring | Drift):
            moved = replace(schedule, shift_frame=self.shift_frame)
            return replace(own, schedule=moved)
        return own

    def history(self, branch: Planned) -> Path | None:
        """The history of a branch, where it is there."""
        return self.histories.get(branch.id)

    def returns(self) -> Returns:
        """J of every branch."""
        return self._returns

    @cached_property
    def _returns(self) -> Returns:
        return returns_of(self.rows, **self.protocol)

    @property
    def protocol(self) -> dict[str, Any]:
        """What J is a mean of, as arguments of `returns_of` and of what calls it."""
        return {
            "shift_frame": self.shift_frame,
            "seeds": self.seeds,
            "n_evaluations": self.n_evaluations,
            "trunk_sets": self.trunk_sets,
        }

    @property
    def n_evaluations(self) -> int | None:
        """Of a finished branch, from the shift on; None: the plan does not say."""
        plan = self.plan.get("plan", self.plan)
        last, every = plan.get("branch_frames"), plan.get("evaluate_frames")
        if not isinstance(last, int) or not isinstance(every, int) or every < 1:
            return None
        if self.until_frame is not None:
            last = min(last, self.until_frame)
        frames = range(every // 2, last + 1, every)
        return sum(frame >= self.shift_frame for frame in frames)


def read_study(folder: str | Path, until_frame: int | None = None) -> Study:
    """Read a study's folder, finished or not.

    With `until_frame` evaluations after that branch frame are left out, so that
    branches which came so far can be compared.

    Raises:
        FallowError: there is no study, its table is not one of this kind, or nothing
            was evaluated between the change and `until_frame`.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FallowError(f"there is no folder {folder}; name that of a study")
    if not (folder / TABLE).exists() and not (folder / PLAN).exists():
        raise FallowError(
            f"{folder} holds no study: neither {TABLE} nor {PLAN} is there; begin one "
            "with: fallow study"
        )
    if (folder / RUN).exists() and not (folder / PLAN).exists():
        raise FallowError(
            f"{folder} is of fallow train, which has no branches to compare; its "
            f"numbers are in {TABLE}, and fallow diagnose reads its histories"
        )
    rows, torn = _rows(folder / TABLE)
    about, odd = _plan(folder / PLAN)
    plan = about.get("plan", about)
    study = Study(
        name=str(plan.get("name") or folder.resolve().name),
        folder=folder,
        rows=tuple(rows),
        plan=about,
        shift_frame=_whole(plan.get("shift_frame"), SHIFT_FRAME),
        seeds=_seeds(plan),
        planned=planned_of(about),
        histories={p.stem: p for p in sorted(folder.glob("histories/*.fallow"))},
        trunk_sets=trunk_sets_of(about),
        notes=tuple(filter(None, (torn, odd))),
    )
    return study if until_frame is None else _until(study, until_frame)


def _until(study: Study, frame: int) -> Study:
    """The study as it was at a branch frame."""
    options.whole("report", "until", frame, at_least=1)
    frames = sorted({row.branch_frame for row in study.rows})
    since = [own for own in frames if own >= study.shift_frame]
    if not since or since[0] > frame:
        first = f"the first is at {since[0]:,}" if since else "there is none yet"
        raise FallowError(
            f"report: until is branch frame {frame:,}; no evaluation since the change "
            f"at {study.shift_frame:,} is so early: {first}"
        )
    rows = tuple(row for row in study.rows if row.branch_frame <= frame)
    note = f"Evaluations after branch frame {frame:,} are left out of every number."
    notes = (*study.notes, note)
    return replace(study, rows=rows, until_frame=frame, notes=notes)


def planned_of(about: Mapping[str, Any]) -> tuple[Planned, ...]:
    """The branches that a study's `plan.json` asks for.

    Those that it lists, with their ids, or in each cell of the plan all combinations;
    a plan without cells is one cell itself. Empty where it says nothing of this.
    """
    listed = about.get("branches")
    if isinstance(listed, list):
        return tuple(_planned(one) for one in listed if isinstance(one, dict))
    plan = about.get("plan", about)
    wanted, cells = _seeds(plan), plan.get("cells", [plan])
    if not wanted or not isinstance(cells, list):
        return ()
    return tuple(
        _planned({**plan, **cell, "condition": condition, "rule": rule, "seed": seed})
        for cell in cells
        if isinstance(cell, dict)
        for condition in _texts(cell, "conditions")
        for rule in _texts(cell, "rules")
        for seed in wanted
    )


def trunk_sets_of(about: Mapping[str, Any]) -> dict[str, str]:
    """The set of each trunk by its id; empty where there is one set only."""
    trunks = about.get("trunks")
    listed = trunks if isinstance(trunks, list) else []
    sets = {
        str(trunk.get("id")): str(trunk.get("trunk_set", ""))
        for trunk in listed
        if isinstance(trunk, dict)
    }
    return sets if len(set(sets.values())) > 1 else {}


def _planned(one: Mapping[str, Any]) -> Planned:
    names = {name.name for name in fields(Planned)} - {"seed"}
    texts = {name: str(one.get(name, "")) for name in names}
    return Planned(**texts, seed=_whole(one.get("seed"), -1))


def _texts(cell: Mapping[str, Any], name: str) -> list[str]:
    found = cell.get(name)
    return [str(one) for one in found] if isinstance(found, list) else []


def _rows(path: Path) -> tuple[list[Evaluation], str]:
    """The rows, and a note where the last line is not whole: it has no end."""
    if not path.exists():
        return [], f"{path.name} is not there yet: nothing was evaluated"
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole in (0, len(content)):
        return _read_or_made_again(path)
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / path.name
        copy.write_bytes(content[:whole])
        rows = read_results(copy)
    return rows, f"the last line of {path.name} is half-written and is left out"


def _read_or_made_again(path: Path) -> tuple[list[Evaluation], str]:
    """The rows; a damaged table is set aside and made again from those of fleets."""
    try:
        return read_results(path), ""
    except FallowError:
        tables = [own for own in path.parent.glob(f"fleets/*/{TABLE}")]
        if not tables:
            raise
        study = study_folder.read_study(path.parent)
        notes = study_folder.set_damaged_aside(study)
        return study_folder.collect(study), " ".join(notes)


def _plan(path: Path) -> tuple[dict[str, Any], str]:
    if not path.exists():
        return {}, f"{path.name} is not there: what is missing cannot be told"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        return {}, f"{path.name} cannot be read ({error}): what is missing is unknown"
    if not isinstance(content, dict) or not isinstance(content.get("plan", {}), dict):
        return {}, f"{path.name} is no plan: what is missing cannot be told"
    return content, ""


def _seeds(plan: Mapping[str, Any]) -> tuple[int, ...] | None:
    found = plan.get("seeds")
    if not isinstance(found, list) or not all(isinstance(one, int) for one in found):
        return None
    return tuple(found)


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default
