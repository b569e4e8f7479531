"""Engines run a study's fleets: this process, one after the other, or a Ray cluster."""

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fallow.agents.compiling import keep_compiled
from fallow.agents.progress import EvaluationResult, Progress
from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.extras import load
from fallow.core.lock import lock
from fallow.core.registry import Registry
from fallow.dynamics import TASKS
from fallow.dynamics.conditions import Condition
from fallow.dynamics.simulator import compile_body
from fallow.study.fleets import PlannedFleet
from fallow.study.plan import Plan
from fallow.study.runner import Event, OnEvent, send_message, try_fleet
from fallow.study.store import (
    FAILED,
    LOCK,
    TABLE,
    Study,
    check_folder,
    is_done,
    open_study,
    read_json,
    read_status,
    read_study,
)
from fallow.study.tables import collect, joined, set_damaged_aside, write_parquet

POLL_S = 2.0
"""Between two looks at what the workers of a cluster have done."""
RETRIES = 10
"""How often the fleet of a worker that died is given to another."""

Engine = Callable[[Study, OnEvent, str | None], None]
ENGINES: Registry[Engine] = Registry("engine")


def run_study(
    plan: Plan,
    folder: str | Path,
    on_event: OnEvent = lambda _: None,
    engine: str = "local",
    address: str | None = None,
    trunks: str | Path | None = None,
) -> Study:
    """Run a study, or resume it.

    Args:
        plan: what to run.
        folder: where results go; a folder with the same plan is resumed.
        on_event: called with every event: progress, evaluations, messages.
        engine: `local` or `ray`.
        address: of the Ray cluster; None starts one on this machine.
        trunks: folder of trunks that studies share; `trunks` beside `folder`.

    Returns:
        The study's folder, with its plan and where its files are.

    Raises:
        FallowError: the folder is another plan's or in use, no space is left, or
            fleets failed, which is raised after all others are done.
        Interrupted: Ctrl-C was pressed; a checkpoint was written.
    """
    run, folder = ENGINES[engine], Path(folder).absolute()
    check_bodies(plan)
    check_folder(folder)
    with lock(folder / LOCK):
        study = open_study(plan, folder, trunks)
        _run(study, run, on_event, address)
    _raise_failures(study)
    return study


def _run(study: Study, run: Engine, on_event: OnEvent, address: str | None) -> None:
    with _explain_full_disk(study):
        for sentence in set_damaged_aside(study):
            send_message(study.fleets[0], on_event, sentence)
        run(study, on_event, address)
        rows = collect(study)
        write_parquet(study.folder / "results.parquet", rows)


def _raise_failures(study: Study) -> None:
    files = [read_json(study.fleet_folder(fleet) / FAILED) for fleet in study.fleets]
    reasons = [str(content.get("reason", "?")) for content in files if content]
    if reasons:
        raise FallowError(
            f"{len(reasons)} of {len(files)} fleets failed, and their branches are "
            f"missing: {'; '.join(reasons)}. The others are done. The same command "
            "tries again from the last checkpoint"
        )


def check_bodies(plan: Plan) -> None:
    """Raise if a condition is impossible on its task's body, before any training."""
    if not isinstance(plan, Plan):
        raise FallowError(
            f"a study is {options.shown(plan)}; make a Plan, or read one with "
            "fallow.study.named.find_plan"
        )
    for cell in plan.cells:
        model = compile_body(TASKS[cell.task].body)
        for condition in cell.conditions:
            Condition.parse(condition).on(model)


def run_local(study: Study, on_event: OnEvent, address: str | None = None) -> None:
    """Run fleets one after the other in this process."""

    def collect_first(event: Event) -> None:
        if event.progress.evaluation is not None:
            collect(study)
        on_event(event)

    for fleet in study.fleets:
        try_fleet(study, fleet, collect_first)


def run_ray(study: Study, on_event: OnEvent, address: str | None = None) -> None:
    """Run fleets as tasks of a Ray cluster that shares the study's folder.

    If a worker dies, another resumes its fleet from the last checkpoint.
    """
    ray = load("ray", "ray", "engine 'ray'")
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    needs = {"num_gpus": 1} if ray.cluster_resources().get("GPU") else {"num_cpus": 1}
    task = ray.remote(max_retries=RETRIES, **needs)(work)
    left = [one for one in study.fleets if not is_done(study.fleet_folder(one))]
    where = (str(study.folder), str(study.store.absolute()))
    waiting = {task.remote(*where, fleet.id): fleet for fleet in left}
    monitor = FleetMonitor(study, on_event)
    while waiting:
        done, _ = ray.wait(list(waiting), timeout=POLL_S)
        for fleet in waiting.values():
            monitor.report(fleet)
        collect(study)
        for reference in done:
            waiting.pop(reference)
            ray.get(reference)  # raises what the worker raised


def work(folder: str, store: str, fleet_id: str) -> None:
    """Run or resume one fleet; the task of a cluster's worker."""
    keep_compiled()
    study = read_study(folder, store)
    (fleet,) = (one for one in study.fleets if one.id == fleet_id)
    try_fleet(study, fleet, lambda _: None)


class FleetMonitor:
    """Reads what workers write about their fleets, and reports what is new."""

    def __init__(self, study: Study, on_event: OnEvent) -> None:
        self._study, self._on_event = study, on_event
        self._times: dict[str, float] = {}
        self._frames: dict[str, int] = {}

    def report(self, fleet: PlannedFleet) -> None:
        """Send an event if the fleet's status changed."""
        folder = self._study.fleet_folder(fleet)
        status: dict[str, Any] = read_status(folder)
        if not status or status["time"] == self._times.get(fleet.id):
            return
        self._times[fleet.id] = status["time"]
        rate = status["session_updates"] / max(status["session_s"], 1e-9)
        place = (status["frame"], status["until_frame"], status["n_updates"], rate)
        evaluation = self._evaluation(fleet, folder / TABLE)
        self._on_event(Event(fleet, status["stage"], Progress(*place, evaluation)))

    def _evaluation(self, fleet: PlannedFleet, table: Path) -> EvaluationResult | None:
        """The last evaluation, if it is new."""
        rows = joined([table])
        last = max((row.frame for row in rows), default=0)
        if last <= self._frames.get(fleet.id, 0):
            return None
        self._frames[fleet.id] = last
        returns = [row.returns for row in rows if row.frame == last]
        return EvaluationResult(last, np.array(returns))


@contextlib.contextmanager
def _explain_full_disk(study: Study) -> Iterator[None]:
    """Turn a full disk into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise FallowError(
            f"no space is left for {study.folder} or its trunks at {study.store}; the "
            "last checkpoint is intact: make room, and start the same command again"
        ) from error


ENGINES.add("local", run_local)
ENGINES.add("ray", run_ray)
