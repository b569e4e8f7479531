"""A study as data: cells of conditions and rules, seeds, lengths; and stable ids.

A plan expands to trunks and branches. Their ids are hashes of everything that
determines their results, so that equal work is found again, in this study or another.
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fallow.agents import AGENTS
from fallow.core import legacy, options, seeds
from fallow.core.errors import FallowError
from fallow.core.legacy import ALGORITHM
from fallow.dynamics.conditions import Condition
from fallow.dynamics.tasks import ACTION_REPEAT, TASKS
from fallow.replay.rules import Rule
from fallow.study.checks import check_cell, check_plan, n_worlds_of
from fallow.study.planned import PlannedBranch, PlannedTrunk, identity, shifted
from fallow.study.rows import modern_condition

TRUNK_ALGORITHM = 1
"""`ALGORITHM` of trunks, which none of its changes concerns."""
PLAN_FILE = "plan.json"
LISTS = ("conditions", "rules")
"""Fields of a cell that are lists of texts."""
FIRST_SET = "A"
"""Trunks of this set train with the plan's own seeds."""


@dataclass(frozen=True)
class Cell:
    """Conditions and rules, all crossed, of one agent on one task."""

    task: str = "walker-walk"
    agent: str = "dreamer"
    conditions: tuple[str, ...] = ("none",)
    """Frames count from the branch point; the change comes at the plan's shift."""
    rules: tuple[str, ...] = ("passive",)
    trunk_set: str = FIRST_SET
    """Other sets train their trunks with other seeds."""

    def __post_init__(self) -> None:
        _check_lists(vars(self))
        check_cell(self)
        vars(self).update(
            conditions=tuple(str(Condition.parse(text)) for text in self.conditions),
            rules=tuple(str(Rule.parse(text)) for text in self.rules),
        )


@dataclass(frozen=True)
class Plan:
    """A study; the defaults are the protocol's numbers."""

    name: str
    cells: tuple[Cell, ...]
    preset: str = "lean"
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    trunk_frames: int = 200_000
    branch_frames: int = 130_000
    shift_frame: int = 40_000
    """Branch frame of the change, whatever the condition."""
    evaluate_frames: int = 10_000
    """Between two evaluations."""
    offset_frames: int = 0
    """Evaluations come at multiples of `evaluate_frames` plus this, from the first
    above 0 on: 10k, 20k, … as in the paper's code base; 5,000 gives 5k, 15k, …"""
    n_episodes: int = 10
    """Of an evaluation."""
    save_frames: int = 20_000
    """Between two checkpoints."""
    capacity_transitions: int = 1_000_000
    """Of each branch's replay."""
    device: str = "here"
    """Sized for: `here`, a name such as `h200`, or memory such as `24GiB`."""
    seeds_per_fleet: int = 0
    """Seeds that are trained together; 0: one on a processor, else what fits."""

    def __post_init__(self) -> None:
        vars(self).update(cells=_checked_cells(self.cells), seeds=_seeds(self.seeds))
        check_plan(self)

    # ---------------------------------------------------------------- parts

    @property
    def evaluation_frames(self) -> tuple[int, ...]:
        """Branch frames of all evaluations of a branch."""
        first = self.offset_frames or self.evaluate_frames
        return tuple(range(first, self.branch_frames + 1, self.evaluate_frames))

    @property
    def return_frames(self) -> tuple[int, ...]:
        """Branch frames of the evaluations after the change, whose mean is J."""
        return tuple(f for f in self.evaluation_frames if f > self.shift_frame)

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks, each once."""
        return _once(cell.task for cell in self.cells)

    @property
    def agents(self) -> tuple[str, ...]:
        """All agents, each once."""
        return _once(cell.agent for cell in self.cells)

    @property
    def conditions(self) -> tuple[str, ...]:
        """All conditions, each once."""
        return _once(text for cell in self.cells for text in cell.conditions)

    @property
    def rules(self) -> tuple[str, ...]:
        """All rules, each once."""
        return _once(text for cell in self.cells for text in cell.rules)

    def trunk(self, cell: Cell, seed: int) -> PlannedTrunk:
        """The trunk of a seed in a cell.

        Args:
            cell: one of the plan's.
            seed: one of the plan's.

        Returns:
            The trunk, with the seed it is trained with and its id.
        """
        training_seed = seed
        if cell.trunk_set != FIRST_SET:
            training_seed = seeds.derive(seed, f"trunk set {cell.trunk_set}")
        content = {
            "algorithm": TRUNK_ALGORITHM,
            "task": cell.task,
            "agent": cell.agent,
            "sizes": options.identifying(AGENTS[cell.agent].sizes(self.preset)),
            "training_seed": training_seed,
            "trunk_frames": self.trunk_frames,
            "capacity_transitions": self.capacity_transitions,
        }
        about = (cell.task, cell.agent, self.preset, seed, training_seed)
        return PlannedTrunk(*about, cell.trunk_set, id=identity("trunk", content))

    def trunks(self) -> tuple[PlannedTrunk, ...]:
        """All trunks, each once, by cell and seed."""
        return _once(self.trunk(cell, s) for cell in self.cells for s in self.seeds)

    def branches(self) -> tuple[PlannedBranch, ...]:
        """All branches, by cell, seed, condition and rule."""
        return self._branches

    @cached_property
    def _branches(self) -> tuple[PlannedBranch, ...]:
        cells = [self.branches_of(cell, self.seeds) for cell in self.cells]
        return tuple(branch for cell in cells for branch in cell)

    def branches_of(
        self, cell: Cell, seeds: Sequence[int]
    ) -> tuple[PlannedBranch, ...]:
        """The branches of some seeds in a cell.

        Args:
            cell: one of the plan's.
            seeds: some of the plan's.

        Returns:
            The branches by seed, condition and rule.
        """
        return tuple(
            self._branch(cell, self.trunk(cell, seed), condition, rule)
            for seed in seeds
            for condition in cell.conditions
            for rule in cell.rules
        )

    def _branch(
        self, cell: Cell, trunk: PlannedTrunk, condition: str, rule: str
    ) -> PlannedBranch:
        in_world = shifted(condition, self.trunk_frames + self.shift_frame)
        content = {
            "algorithm": ALGORITHM,
            "trunk": trunk.id,
            "condition": in_world,
            "rule": rule,
            "branch_frames": self.branch_frames,
            "evaluate_frames": self.evaluate_frames,
            "offset_frames": self.offset_frames,
            "n_episodes": self.n_episodes,
        }
        return PlannedBranch(
            task=cell.task,
            agent=cell.agent,
            preset=self.preset,
            condition=condition,
            rule=rule,
            seed=trunk.seed,
            trunk=trunk.id,
            trunk_fingerprint="",
            id=identity("branch", content),
            training_seed=trunk.training_seed,
            world_condition=in_world,
        )

    # ---------------------------------------------------------------- files

    @classmethod
    def read(cls, folder: str | Path) -> "Plan":
        """The plan that a study's folder belongs to.

        Args:
            folder: of the study; its plan is `plan.json`.

        Returns:
            The plan, whichever version of Fallow wrote it.

        Raises:
            FallowError: there is none, or it cannot be read.
        """
        return cls.of_file(read_plan_file(folder), folder)

    @classmethod
    def of_file(cls, file: dict[str, Any], folder: str | Path) -> "Plan":
        """The plan in a plan file.

        Args:
            file: what `read_plan_file` returned.
            folder: of the study, for messages.

        Returns:
            The plan, whichever version of Fallow wrote it.

        Raises:
            FallowError: a field of the plan is unknown or out of range.
        """
        try:
            content = file["plan"]
            algorithm = file.get("algorithm", 1)
            if algorithm == 1:
                content = _of_algorithm_1(content)
            if algorithm in legacy.WITH_CHUNKS:
                content = _with_chunks(content)
            return cls.from_content(content)
        except FallowError as error:
            raise FallowError(f"{Path(folder) / PLAN_FILE}: {error}") from None

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> "Plan":
        """A plan from plain values, as in JSON or TOML.

        Args:
            content: the fields of a plan; `cells` is a list of tables.

        Returns:
            The plan, checked.

        Raises:
            FallowError: a field is missing, unknown or out of range.
        """
        if not isinstance(content, dict):
            raise FallowError(
                f"a study is {options.shown(content)}; write a table of its fields"
            )
        values = {**content}
        cells = values.pop("cells", [])
        if not isinstance(cells, list | tuple):
            raise FallowError("cells are tables: write [[cells]] before each")
        values["cells"] = tuple(_cell(cell) for cell in cells)
        if "name" not in values:
            raise FallowError('a study needs a name; add name = "…"')
        return options.build(cls, values, "a study")

    def content(self) -> dict[str, Any]:
        """The plan as plain values; `from_content` takes them back."""
        return dataclasses.asdict(self)


def read_plan_file(folder: str | Path) -> dict[str, Any]:
    """The content of a study's plan.json: plan, ids, fleets and what made it.

    Raises:
        FallowError: there is none, or it cannot be read.
    """
    path = Path(folder) / PLAN_FILE
    if not path.is_file():
        raise FallowError(f"there is no study at {folder}: it has no {PLAN_FILE}")
    try:
        file = json.loads(path.read_text(encoding="utf-8"))
        _ = file["plan"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FallowError(
            f"{path} is damaged; restore it from a copy, or begin in another folder"
        ) from None
    return dict(file)


def _has_cells(content: Any) -> bool:
    """Whether a plan can be read so far; others are reported later."""
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        return False
    return all(isinstance(cell, dict) for cell in content["cells"])


def _with_chunks(content: Any) -> Any:
    """A plan of algorithm 1 or 2, whose reservoirs keep chunks."""
    if not _has_cells(content):
        return content
    cells = []
    for cell in content["cells"]:
        _check_lists(cell)
        rules = [legacy.rule(text) for text in cell.get("rules", Cell.rules)]
        cells.append(cell | {"rules": rules})
    return content | {"cells": cells}


def _of_algorithm_1(content: Any) -> Any:
    """A plan of algorithm 1 with the defaults of then written out."""
    if not _has_cells(content):
        return content
    every = content.get("evaluate_frames", Plan.evaluate_frames)
    options.check_int("a study", "evaluate_frames", every, at_least=1)
    cells = [_modern_cell(cell) for cell in content["cells"]]
    return {"offset_frames": _old_offset(content), **content} | {"cells": cells}


def _old_offset(content: dict[str, Any]) -> int:
    """Half an interval, up to the next step of the agents' worlds."""
    every = int(content.get("evaluate_frames", Plan.evaluate_frames))
    agents = [cell.get("agent", Cell.agent) for cell in content["cells"]]
    preset = content.get("preset", Plan.preset)
    for name, text in [("preset", preset), *(("agent", agent) for agent in agents)]:
        options.check_text("a study", name, text)
    steps = [n_worlds_of(agent, preset) * ACTION_REPEAT for agent in agents]
    step = math.lcm(*steps)
    return -(-(every // 2) // step) * step


def _modern_cell(cell: Any) -> Any:
    if not isinstance(cell, dict) or cell.get("task", Cell.task) not in TASKS:
        return cell
    _check_lists(cell)
    task = cell.get("task", Cell.task)
    conditions = cell.get("conditions", Cell.conditions)
    return cell | {"conditions": [modern_condition(text, task) for text in conditions]}


def _cell(content: Any) -> Cell:
    if not isinstance(content, dict):
        raise FallowError(
            f"a cell is {options.shown(content)}; write a table with conditions, rules"
        )
    return options.build(Cell, content, "a cell")


def _checked_cells(given: Any) -> tuple[Cell, ...]:
    is_list = isinstance(given, list | tuple)
    if not is_list or not all(isinstance(cell, Cell) for cell in given):
        raise FallowError(
            f"the cells of a study are {options.shown(given)}; give a list of Cell"
        )
    return tuple(given)


def _check_lists(content: dict[str, Any]) -> None:
    for name in LISTS:
        texts = content.get(name, ())
        is_list = isinstance(texts, list | tuple)
        if not is_list or not all(isinstance(one, str) for one in texts):
            raise FallowError(
                f"{name} of a cell are {options.shown(texts)}; write a list of texts"
            )


def _seeds(given: Any) -> tuple[int, ...]:
    if isinstance(given, str):
        return tuple(options.seeds(given))
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _once(items: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))
