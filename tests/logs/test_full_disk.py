"""A write that fails anywhere loses nothing, and the writer works again after it."""

import errno
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_history import HEADER, assert_equal, episode, record

from fallow.dynamics import Worlds
from fallow.logs import HistoryWriter, Recorder, blocks, read_history


class Disk(io.FileIO):
    """A file on a disk with room for `free` bytes more; None: any number."""

    free: int | None = None

    def write(self, content) -> int:
        if Disk.free is None:
            return super().write(content)
        if Disk.free == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = min(Disk.free, len(content), 64)  # a raw file may take fewer
        Disk.free -= taken
        return super().write(memoryview(content)[:taken])


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> type[Disk]:
    monkeypatch.setattr(blocks, "FileIO", Disk)
    monkeypatch.setattr(Disk, "free", None)
    return Disk


def write_with_one_failure(path: Path, free: int) -> int:
    """Write two episodes; each write that fails is repeated once the disk is free.

    Returns how many writes failed.
    """
    failures = 0

    def again(write, *arguments):
        nonlocal failures
        before = path.read_bytes() if path.exists() else None
        try:
            return write(*arguments)
        except OSError as error:
            assert error.errno == errno.ENOSPC and error.filename == str(path)
            after = path.read_bytes() if path.exists() else None
            assert after == before
            failures += 1
            Disk.free = None
            return write(*arguments)

    Disk.free = free
    with again(HistoryWriter, path, HEADER) as writer:
        for seed in range(2):
            again(writer.add, episode(seed, length=2))
            assert writer.n_episodes == seed + 1
    return failures


def test_a_disk_that_is_full_at_any_byte_loses_nothing(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.fallow", tmp_path / "run.fallow"
    assert write_with_one_failure(whole, 10**9) == 0
    content = whole.read_bytes()
    for free in range(len(content)):
        assert write_with_one_failure(path, free) == 1
        assert path.read_bytes() == content, free
        path.unlink()


def test_a_file_that_cannot_even_be_cut_is_cut_before_the_next_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.fallow"
    with HistoryWriter(path, HEADER) as writer:
        writer.add(episode(0))
        with monkeypatch.context() as broken:
            broken.setattr(Disk, "free", 100)

            def fail(*_: object) -> int:
                raise OSError(errno.EIO, "broken")

            calls = iter([Disk.truncate, fail])
            broken.setattr(Disk, "truncate", lambda *a: next(calls)(*a))
            with pytest.raises(OSError, match="No space left"):
                writer.add(episode(1))
        assert len(read_history(path).episodes) == 1  # and a half-written block
        writer.add(episode(2))
    history = read_history(path)
    assert history.damage == ""
    assert_equal(history.episodes[1], episode(2))


def test_a_recorder_keeps_finished_episodes_until_they_are_written(
    tmp_path: Path, disk: type[Disk]
) -> None:
    paths = [tmp_path / "whole.fallow", tmp_path / "full.fallow"]
    worlds = Worlds("pendulum-swingup", "none", [[1, 2]])
    record(paths[0], worlds, 1000).close()

    worlds = Worlds("pendulum-swingup", "none", [[1, 2]])
    recorder = Recorder(worlds, paths[1])
    random = np.random.default_rng(int(worlds.clock_frames[0]))
    for step in range(1000):
        actions = random.uniform(-1, 1, (1, 2, 1)).astype(np.float32)
        disk.free = 100 if step == 499 else None
        outcome = worlds.step(actions)
        if step == 499:
            with pytest.raises(OSError, match="No space left"):
                recorder.add(actions, outcome)
        else:
            recorder.add(actions, outcome)
    recorder.close()
    assert paths[0].read_bytes() == paths[1].read_bytes()


LIMITED = """
import resource, signal, sys
from test_history import HEADER, episode
from fallow.logs import HistoryWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with HistoryWriter(sys.argv[1], HEADER) as writer:
    writer.add(episode(0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    failed = 0
    for seed in range(1, 6):
        try:
            writer.add(episode(seed))
        except OSError:
            failed += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    writer.add(episode(9))
    print(failed, writer.n_episodes)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs file size limits")
def test_a_real_limit_on_the_size_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.fallow"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    failed, kept = map(int, done.stdout.split())
    history = read_history(path)
    assert failed >= 2 and failed + kept == 7
    assert history.damage == "" and len(history.episodes) == kept
    assert_equal(history.episodes[-1], episode(9))
