"""`fallow track --follow`: logs that grow while they are read."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import log_files
import numpy as np
import pytest
from test_track import RECURRING, write_jsonl

from fallow.cli import main
from fallow.core.errors import FallowError
from fallow.diagnosis import example
from fallow.diagnosis.follow import LogFollower
from fallow.logs import Columns, HistoryWriter, read_history
from fallow.logs.following import Following
from fallow.logs.growing import GrowingHistory, GrowingRows
from fallow.logs.log import Log


@pytest.fixture(scope="module")
def log() -> Log:
    return example(RECURRING)


def test_a_table_that_became_shorter_is_not_read_from_its_middle(
    log: Log, tmp_path: Path
) -> None:
    """As after copytruncate: what follows is another recording."""
    path = log_files.write("csv", log, tmp_path)
    content = path.read_bytes()
    source = GrowingRows(path, Columns())
    n_read = len(list(source.read(False)))
    path.write_bytes(content[:9000])
    with pytest.raises(FallowError, match="became shorter"):
        list(source.read(False))
    assert n_read > 30


def test_a_history_is_read_block_by_block(log: Log, tmp_path: Path) -> None:
    """Half a block waits; the file is never read twice."""
    content = log_files.write("history", log, tmp_path).read_bytes()
    path = tmp_path / "grows.fallow"
    n_read, seen = 0, []
    source = None
    for end in (*range(9000, len(content), 6001), len(content)):
        path.write_bytes(content[:end])
        source = source or GrowingHistory(path, Columns())
        new = list(source.read(False))
        n_read += len(new)
        seen.append(n_read)
    assert n_read == 36 and len(set(seen)) > 10
    path.write_bytes(content[:9000])
    with pytest.raises(FallowError, match="became shorter"):
        list(source.read(False))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_may_come_in_any_pieces(log: Log, tmp_path: Path, kind: str) -> None:
    path, grows = tmp_path / f"run.{kind}", tmp_path / f"grows.{kind}"
    short = example(replace(RECURRING, n_episodes=9))
    if kind == "csv":
        log_files.write("csv", short, tmp_path)
    else:
        write_jsonl(short, path)
    content = path.read_bytes()
    grows.write_bytes(b"")
    source, found = GrowingRows(grows, Columns()), []
    for end in (*range(7, len(content), 5003), len(content)):
        grows.write_bytes(content[:end])
        found += source.read(False)
    assert len(found) == 8  # the last one may be running
    found += source.read(True)
    for episode, (velocity, action) in zip(
        found, log_files.episodes(short), strict=True
    ):
        np.testing.assert_allclose(episode.velocity, velocity, rtol=1e-6)
        np.testing.assert_allclose(episode.action, action, rtol=1e-6)


def follow(*arguments: object, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "fallow.cli", "track", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_a_growing_history_is_followed(log: Log, tmp_path: Path) -> None:
    """Lines come while the run continues; Ctrl-C prints the summary and exits 130."""
    history = read_history(log_files.write("history", log, tmp_path))
    path, page = tmp_path / "grows.fallow", tmp_path / "page.html"
    process = follow(path, "--follow", "--html", page)
    with HistoryWriter(path, history.header) as writer:
        for episode in history.episodes[:20]:
            writer.add(episode)
        assert "3 actuators" in process.stdout.readline()
        assert process.stdout.readline().startswith("episode 15: regime 1, new")
        for episode in history.episodes[20:]:
            writer.add(episode)
        assert process.stdout.readline().startswith("episode 25: regime 0 again")
        process.send_signal(2)
        out, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "2 regimes. Keep episodes 0 to 13, 24 to" in out
    assert error == "fallow: interrupted\n" and page.exists()


def test_a_growing_table_is_followed_until_it_is_idle(log: Log, tmp_path: Path) -> None:
    lines = log_files.write("csv", log, tmp_path).read_text().splitlines(True)
    path = tmp_path / "grows.csv"
    process = follow(path, "--follow", "--idle-s", "3", "--json")
    with path.open("w") as file:
        for place, line in enumerate(lines):
            file.write(line)
            if place % 500 == 0:
                file.flush()
                time.sleep(0.05)
    out, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (0, "")
    assert len(out.splitlines()) == 36  # the last one ends with the waiting


def test_files_that_come_to_a_folder_are_followed(log: Log, tmp_path: Path) -> None:
    """In the order of their numbers; a broken one is named, left out and counted."""
    folder = tmp_path / "runs"
    folder.mkdir()
    header = read_history(log_files.write("history", log, tmp_path)).header
    episodes = read_history(tmp_path / "run.fallow").episodes
    for i in range(12):
        with HistoryWriter(folder / f"run{i}.fallow", header) as writer:
            for episode in episodes[3 * i : 3 * i + 3]:
                writer.add(episode)
    (folder / "run5x.npz").write_bytes(b"PK\x03\x04 no archive")
    (folder / ".hidden.csv").write_text("a,b\n1,2\n")
    process = follow(folder, "--follow", "--idle-s", "0")
    out, error = process.communicate(timeout=120)
    assert process.returncode == 2 and error == ""
    assert "episode 15: regime 1, new, since 14" in out
    assert "run5x.npz: left out: " in out and "36 episodes" in out
    assert "1 log left out" in out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_killed_follower_saves_its_state(
    log: Log, tmp_path: Path, number: int
) -> None:
    """A connection that is gone ends like Ctrl-C."""
    path, state = log_files.write("history", log, tmp_path), tmp_path / "state"
    process = follow(
        path,
        *("--follow", "--state", state),
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # under nohup, too
    )
    while not process.stdout.readline().startswith("episode 25"):
        pass
    process.send_signal(number)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130 and "2 regimes. Keep episodes" in out
    assert LogFollower(Following([path], Columns()), state).regimes().labels.size > 24


def test_ctrl_c_before_the_first_episode(tmp_path: Path, monkeypatch, capsys) -> None:
    def press(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fallow.logs.following.time.sleep", press)
    with pytest.raises(KeyboardInterrupt):
        main(["track", str(tmp_path / "later.csv"), "--follow"])
    assert capsys.readouterr() == ("", f"waiting for {tmp_path / 'later.csv'}\n")


def test_nobody_reads_the_rest(log: Log, tmp_path: Path) -> None:
    path = log_files.write("npz", log, tmp_path)
    process = follow(path, "--json")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) in (0, 141)
    assert process.stderr.read() == ""
