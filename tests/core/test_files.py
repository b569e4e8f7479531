import errno
import os
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fallow.core import arrayfile, files
from fallow.core.errors import sentence_of
from fallow.diagnosis.pipeline import Failure


def test_a_file_is_there_whole_or_not_at_all(tmp_path) -> None:
    path = tmp_path / "new" / "table.csv"
    with files.write_atomic(path) as part:
        part.write_text("first")
        assert not path.exists()
    assert path.read_text() == "first"
    with pytest.raises(RuntimeError), files.write_atomic(path) as part:
        part.write_text("half of the sec")
        raise RuntimeError
    assert path.read_text() == "first"
    with files.write_atomic(path) as part:
        part.write_text("third")
    assert path.read_text() == "third"
    assert list(path.parent.iterdir()) == [path]


def test_what_a_killed_process_left_is_removed(tmp_path) -> None:
    """And nothing else: not of a living process, of another host or another name."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    host = socket.gethostname()
    stays = [
        f"a.csv.part-{host}-{os.getppid()}-3",
        f"a.csv.part-elsewhere-{dead.pid}-0",
        "a.csv.part-of-my-thesis",
        "b.csv",
        f"b.csv.part-{host}-{dead.pid}-0",
    ]
    for name in (*stays, f"a.csv.part-{host}-{dead.pid}-0"):
        (tmp_path / name).touch()
    files.write_text(tmp_path / "a.csv", "whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*stays, "a.csv"])
    files.remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*stays[:4], "a.csv"])


def test_two_writers_of_one_process_do_not_meet(tmp_path) -> None:
    path = tmp_path / "x"
    with files.write_atomic(path) as one, files.write_atomic(path) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"  # the last to finish


def test_what_the_system_refuses_names_the_file_that_was_asked_for(
    tmp_path, monkeypatch
) -> None:
    def refuse(part: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(part))

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(PermissionError) as caught:
        arrayfile.save(tmp_path / "state", "test", 1, {"x": np.zeros(1)}, {})
    said = "permission denied; change its permissions, or choose another path"
    assert sentence_of(caught.value) == f"cannot use {tmp_path / 'state'}: {said}"
    failure = Failure.of(tmp_path / "logs", caught.value)
    assert failure.reason == sentence_of(caught.value)


def test_a_place_is_checked_before_the_work(tmp_path, monkeypatch) -> None:
    files.require_place(tmp_path / "new" / "page.html", "--html")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"page\.html"):
        files.require_place(tmp_path / "new" / "page.html", "--html")
