"""A study on a local Ray cluster, one of whose workers is killed midway.

`make test-extras` runs it: ray is an extra.
"""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from micro_study import UPDATES_PER_SAVE, in_worker, rows_but_time, small_plan

from fallow.study.engines import run_study
from fallow.study.status import status_of
from fallow.study.store import open_study

ray = pytest.importorskip("ray", reason="ray is an extra: make test-extras")

PLAN = small_plan(("none", "gain"), ("passive",), seeds=(0, 1))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers, which count their updates in a file."""
    counter = tmp_path_factory.mktemp("ray") / "counter"
    passed_on = {"PYTHONPATH", "XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR", "FALLOW_CACHE"}
    variables = {name: os.environ[name] for name in passed_on if name in os.environ}
    here = str(Path(__file__).parents[1])
    path = [here, variables.get("PYTHONPATH", "")]
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    variables["COUNTER"] = str(counter)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": variables, "worker_process_setup_hook": in_worker},
    )
    yield counter
    ray.shutdown()


def kill_a_worker(folder: Path, fleet: str, killed: list[int]) -> None:
    """Wait until a fleet's branches have a checkpoint, then kill who works on it."""
    work = folder / "fleets" / fleet
    until_s = time.monotonic() + 600
    while not (work / "checkpoint").is_dir():
        if time.monotonic() > until_s:
            return
        time.sleep(0.01)
    pid = int(work.with_name(f"{fleet}.lock.holder").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    killed.append(pid)


def test_a_worker_that_dies_is_replaced_and_nothing_changes(cluster, tmp_path) -> None:
    folder = tmp_path / "ray"
    first = open_study(PLAN, folder).fleets[0]
    killed: list[int] = []
    killer = threading.Thread(target=kill_a_worker, args=(folder, first.id, killed))
    killer.start()
    run_study(PLAN, folder, engine="ray")
    killer.join()
    assert len(killed) == 1
    redone = cluster.stat().st_size - status_of(folder).updates_total
    assert 0 <= redone < UPDATES_PER_SAVE * len(first.branches)
    run_study(PLAN, tmp_path / "elsewhere" / "local")
    local = tmp_path / "elsewhere" / "local" / "results.csv"
    assert rows_but_time(folder / "results.csv") == rows_but_time(local)
