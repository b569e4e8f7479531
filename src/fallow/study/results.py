"""One model of a study: its plan, its rows and its histories.

Tables, figures and pages read this and nothing else of a folder. Status, merging and
sharing concern fleets and files; they read `store.Study`, from which this is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fallow.agents.beliefs import BELIEFS, Belief, read_beliefs
from fallow.core import files, options
from fallow.core.errors import FallowError
from fallow.core.results import ResultRow
from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import SHIFT_FRAME
from fallow.study.plan import PLAN_FILE, Plan
from fallow.study.planned import PlannedBranch, shifted
from fallow.study.rows import read_rows
from fallow.study.statistics import Returns, Setting, returns_of
from fallow.study.store import TABLE, Study, is_done, read_study
from fallow.study.tables import collect, joined

RUN_FILE = "run.json"
"""The file of `fallow train`, whose folder is not a study."""


@dataclass(frozen=True)
class StudyResults:
    """A study, finished or not."""

    name: str
    folder: Path
    rows: tuple[ResultRow, ...]
    plan: Plan | None = None
    """None: the folder has none that can be read."""
    branches: tuple[PlannedBranch, ...] = ()
    """That the plan asks for, with the ids that they were started with."""
    set_of_trunk: dict[str, str] = field(default_factory=dict)
    """The name of the set of each trunk id."""
    histories: dict[str, Path] = field(default_factory=dict)
    """By the id of a branch or trunk."""
    made_with: dict[str, Any] = field(default_factory=dict)
    """Versions and commit that made it."""
    beliefs: dict[str, tuple[Belief, ...]] = field(default_factory=dict)
    """Reports of trackers, by the id of a branch."""
    until_frame: int | None = None
    """Since the branch point: later evaluations are left out; None: none are."""
    notes: tuple[str, ...] = ()
    """Sentences on what is odd about the folder."""

    @property
    def trunk_sets(self) -> dict[str, str]:
        """The name of the set of each trunk id; empty where there is one set only."""
        several = len(set(self.set_of_trunk.values())) > 1
        return self.set_of_trunk if several else {}

    @property
    def shift_frame(self) -> int:
        """Branch frame of the first change."""
        return SHIFT_FRAME if self.plan is None else self.plan.shift_frame

    @property
    def seeds(self) -> tuple[int, ...] | None:
        """The expected seeds; None: there is no plan."""
        return None if self.plan is None else self.plan.seeds

    @property
    def trunk_frames(self) -> int:
        """Frames before the branch point, by the rows themselves."""
        return max((row.frame - row.branch_frame for row in self.rows), default=0)

    @property
    def return_frames(self) -> tuple[int, ...]:
        """Branch frames of the evaluations whose mean is J."""
        if self.plan is None:
            frames = {row.branch_frame for row in self.rows}
            return tuple(sorted(f for f in frames if f > self.shift_frame))
        last = self.until_frame or self.plan.branch_frames
        return tuple(frame for frame in self.plan.return_frames if frame <= last)

    @property
    def protocol(self) -> dict[str, Any]:
        """What J is a mean of, as arguments of `returns_of`."""
        return {
            "shift_frame": self.shift_frame,
            "seeds": self.seeds,
            "n_evaluations": None if self.plan is None else len(self.return_frames),
            "trunk_sets": self.trunk_sets,
        }

    @cached_property
    def returns(self) -> Returns:
        """J of every branch."""
        return returns_of(self.rows, **self.protocol)

    def condition(self, text: str) -> Condition | None:
        """A condition of the table, its change where the plan puts it.

        None where this version of Fallow knows no such condition.
        """
        try:
            if self.plan is not None:
                text = shifted(text, self.plan.shift_frame)
            return Condition.parse(text)
        except FallowError:
            return None

    def setting(self, row: ResultRow | PlannedBranch) -> Setting:
        """Where a row or a branch is compared."""
        trunk_set = self.trunk_sets.get(row.trunk, "")
        return Setting(row.task, row.agent, row.preset, row.condition, trunk_set)


def read_study_results(
    folder: str | Path, until_frame: int | None = None
) -> StudyResults:
    """Read a study's folder, finished or not.

    With `until_frame` evaluations after that branch frame are left out, so that
    branches which came so far can be compared.

    Raises:
        FallowError: there is no study, its table is not one of this kind, or nothing
            was evaluated between the change and `until_frame`.
    """
    folder = Path(folder)
    _check(folder)
    study, plan_note = _study(folder)
    rows, table_note = _rows(folder, study)
    histories = {p.stem: p for p in sorted(folder.glob("histories/*.fallow"))}
    results = StudyResults(
        name=folder.resolve().name if study is None else study.plan.name,
        folder=folder,
        rows=tuple(rows),
        histories=histories,
        notes=tuple(filter(None, (table_note, plan_note))),
        **({} if study is None else _planned(study)),
    )
    return results if until_frame is None else _until(results, until_frame)


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise FallowError(f"there is no folder {folder}; name that of a study")
    has_plan = (folder / PLAN_FILE).exists()
    if not has_plan and not (folder / TABLE).exists():
        raise FallowError(
            f"{folder} holds no study: neither {TABLE} nor {PLAN_FILE} is there; begin "
            "one with: fallow study"
        )
    if (folder / RUN_FILE).exists() and not has_plan:
        raise FallowError(
            f"{folder} is of fallow train, which has no branches to compare; its "
            f"numbers are in {TABLE}, and fallow diagnose reads its histories"
        )


def _study(folder: Path) -> tuple[Study | None, str]:
    """The study as planned; without a plan, a note on why."""
    if not (folder / PLAN_FILE).exists():
        return None, f"{PLAN_FILE} is missing, so missing branches cannot be listed."
    try:
        return read_study(folder), ""
    except FallowError as error:
        return None, f"Missing branches cannot be listed: {error}."


def _planned(study: Study) -> dict[str, Any]:
    """The fields of the results that come from the plan."""
    return {
        "plan": study.plan,
        "branches": study.branches,
        "set_of_trunk": {trunk.id: trunk.trunk_set for trunk in study.trunks},
        "beliefs": _beliefs(study),
        "made_with": dict(study.made_with),
    }


def _beliefs(study: Study) -> dict[str, tuple[Belief, ...]]:
    found: dict[str, tuple[Belief, ...]] = {}
    for fleet in study.fleets:
        reports = read_beliefs(study.fleet_folder(fleet) / BELIEFS)
        for index, branch in enumerate(fleet.branches):
            if of_branch := tuple(b for b in reports if b.branch == index):
                found[branch.id] = of_branch
    return found


def _rows(folder: Path, study: Study | None) -> tuple[list[ResultRow], str]:
    """The rows; a damaged table is made again from those of the fleets."""
    if not (folder / TABLE).exists():
        return [], f"{TABLE} is not there yet: nothing was evaluated."
    torn = not (folder / TABLE).read_bytes().endswith(b"\n")
    try:
        rows, error = read_rows(folder / TABLE, unfinished=torn), ""
    except FallowError as damage:
        rows, error = [], str(damage)
    kept = None if study is None else _rows_of_fleets(study)
    if error and not kept:
        raise FallowError(error)
    if not error and (kept is None or repr(kept) == repr(rows)):
        return (
            rows,
            f"The last line of {TABLE} is unfinished, left out." if torn else "",
        )
    aside = files.set_aside(folder / TABLE)
    if study is not None:
        collect(study)
    why = error or f"{folder / TABLE} is not what the fleets wrote"
    return kept or [], f"{why}; set aside as {aside.name} and made again."


def _rows_of_fleets(study: Study) -> list[ResultRow] | None:
    """The rows of all fleets, where all are done and their tables are unchanged."""
    folders = [study.fleet_folder(fleet) for fleet in study.fleets]
    if not folders or not all(map(is_done, folders)):
        return None
    return joined(one / TABLE for one in folders)


def _until(results: StudyResults, frame: int) -> StudyResults:
    """The study as it was at a branch frame."""
    options.check_int("report", "until", frame, at_least=1)
    after = [row.branch_frame for row in results.rows]
    after = sorted(f for f in after if f > results.shift_frame)
    if not after or after[0] > frame:
        first = f"the first is at {after[0]:,}" if after else "there is none yet"
        raise FallowError(
            f"report: until is branch frame {frame:,}; no evaluation after the change "
            f"at {results.shift_frame:,} is so early: {first}"
        )
    note = f"Evaluations after branch frame {frame:,} are left out of every number."
    return replace(
        results,
        rows=tuple(row for row in results.rows if row.branch_frame <= frame),
        until_frame=frame,
        notes=(*results.notes, note),
    )


def together(studies: Sequence[StudyResults]) -> StudyResults:
    """Several studies as one, e.g. the three sweeps that make the paper's Fig. 4.

    Raises:
        FallowError: they were not evaluated alike.
    """
    first = studies[0]
    for other in studies[1:]:
        if (first.shift_frame, first.return_frames) != (
            other.shift_frame,
            other.return_frames,
        ):
            raise FallowError(
                f"{first.folder} and {other.folder} were evaluated at other frames "
                f"after the change ({_ends(first)}, {_ends(other)}); report "
                "them separately"
            )
    return replace(
        first,
        name=", ".join(study.name for study in studies),
        rows=tuple(row for study in studies for row in study.rows),
        branches=tuple(branch for study in studies for branch in study.branches),
        set_of_trunk={k: v for study in studies for k, v in study.set_of_trunk.items()},
        histories={k: v for study in studies for k, v in study.histories.items()},
        beliefs={k: v for study in studies for k, v in study.beliefs.items()},
        notes=tuple(note for study in studies for note in study.notes),
    )


def _ends(study: StudyResults) -> str:
    frames = study.return_frames
    return f"{frames[0]:,} to {frames[-1]:,}" if frames else "none"
