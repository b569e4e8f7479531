"""Compiled programs are run, so only sealed ones are read."""

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from fallow.agents import program_cache
from fallow.core.errors import FallowError

PAYLOAD = pickle.dumps({"a": list(range(50))})


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """A user of this machine."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "cache"
    program_cache.open_cache(folder)
    program_cache.write(folder / "programs" / "update-1", PAYLOAD)
    return folder


def test_a_program_comes_back(folder) -> None:
    assert program_cache.read(folder / "programs" / "update-1") == PAYLOAD
    assert program_cache.read(folder / "programs" / "update-2") is None
    program_cache.open_cache(folder)


def test_the_folder_and_the_key_are_private(folder, home) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    (key,) = (home / ".cache").iterdir()
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32


def test_no_altered_program_is_read(folder) -> None:
    """A flipped bit, a cut, bytes more, another's payload: all are made anew."""
    path = folder / "programs" / "update-1"
    good = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(1000):
        altered = bytearray(good)
        at = random.integers(len(good))
        if random.random() < 0.5:
            altered[at] ^= 1 << random.integers(8)
        else:
            altered = altered[:at] + random.bytes(random.integers(4))
        path.write_bytes(altered)
        assert program_cache.read(path) is None
    path.write_bytes(PAYLOAD)  # as versions before wrote it
    assert program_cache.read(path) is None


def test_programs_of_another_machine_need_trust(folder, home) -> None:
    shutil.rmtree(home)  # another user, with another key
    path = folder / "programs" / "update-1"
    assert program_cache.read(path) is None
    with pytest.raises(FallowError, match="add --trust-cache if you trust"):
        program_cache.open_cache(folder)
    altered = folder / "programs" / "update-2"
    altered.write_bytes(path.read_bytes()[:-1])
    program_cache.open_cache(folder, trusted=True)
    assert program_cache.read(path) == PAYLOAD
    assert program_cache.read(altered) is None
    program_cache.open_cache(folder)  # once is enough


def test_a_folder_that_others_can_write_is_refused(folder) -> None:
    folder.chmod(0o777)
    with pytest.raises(FallowError, match=r"by other users \(mode 777\)"):
        program_cache.open_cache(folder, trusted=True)
    folder.chmod(0o755)
    program_cache.open_cache(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_of_another_user_is_refused(folder, monkeypatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(FallowError, match="belongs to another user"):
        program_cache.open_cache(folder)
