"""Names in files never reach the terminal raw, and errors are one sentence."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import log_files
import numpy as np
import pytest
import ros_files
from hypothesis import given
from hypothesis import strategies as st

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs import Columns, from_data, read_log
from fallow.logs.log import Log
from fallow.logs.readers import READERS, reader

EVIL = "\x1b[31mred\x1b]0;owned\x07\r\n\u202egnp.exe\udcff"
"""Colours, a window's title, a bell, a new line, text turned around, and byte 0xff."""


def is_safe(text: str) -> bool:
    text.encode()  # a stray byte has no encoding
    return text.isprintable()


@given(st.text(st.characters()))
def test_printable_text_is_printable_and_says_the_same(text: str) -> None:
    shown = printable(text)
    assert is_safe(shown)
    if text.isprintable():
        assert shown == text
    assert len(printable(text, 10).encode("unicode_escape")) <= 10 * 10


def test_what_is_escaped_can_be_recognised() -> None:
    assert printable("a\x1b[31mb\n\udcff\u202e") == r"a\x1b[31mb\n\xff\u202e"
    assert printable("hüfte [rad/s]") == "hüfte [rad/s]"
    assert printable("x" * 50, 10) == "xxxxxxxxx…"


def csv_columns(log: Log, folder: Path) -> Path:
    names = [f'"{EVIL.replace(chr(0xDCFF), "")}{i}_{k}"' for k in "va" for i in "01"]
    rows = "\n".join(f"{i // 5},1,2,3,4" for i in range(60))
    (folder / "a.csv").write_text("episode," + ",".join(names) + "\n" + rows)
    return folder / "a.csv"


def npz_names(log: Log, folder: Path) -> Path:
    content = log_files.rows(log)
    name = f"{EVIL[:20]}velocity"
    np.savez(folder / "a.npz", **{name: content.pop("velocity"), **content})
    return folder / "a.npz"


def hdf5_names(log: Log, folder: Path) -> Path:
    path = folder / "a.hdf5"
    with h5py.File(path, "w") as file:
        file.attrs["env_spec"] = json.dumps({"id": EVIL[:30]})
        for index, (velocity, action) in enumerate(log_files.episodes(log)):
            file[f"episode_{index}/\x1b[31m/qvel"] = velocity
            file[f"episode_{index}/actions"] = action
    return path


def lerobot_names(log: Log, folder: Path) -> Path:
    path = log_files.write("lerobot", log, folder)
    info = json.loads((path / "meta" / "info.json").read_text())
    info["features"]["action"]["names"] = [f"{EVIL}joint_{j}" for j in range(3)]
    (path / "meta" / "info.json").write_text(json.dumps(info))
    return path


def ros_names(log: Log, folder: Path) -> Path:
    evil = replace(log, actuators=tuple(f"{i}" for i in range(3)))
    object.__setattr__(evil, "actuators", tuple(f"\x1b[31m{i}" for i in range(3)))
    ros_files.write_bag(evil, folder / "a.bag")
    return folder / "a.bag"


def file_name(log: Log, folder: Path) -> Path:
    path = Path(os.fsdecode(os.fsencode(folder) + b"/\xff\x1b[31m.npz"))
    np.savez(folder / "plain.npz", **log_files.rows(log))
    (folder / "plain.npz").rename(path)
    return path


MAKERS = [csv_columns, npz_names, hdf5_names, lerobot_names, ros_names, file_name]


@pytest.mark.skipif(sys.platform != "linux", reason="file names of any bytes")
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_names_from_files_are_shown_escaped(
    make, run, small_log: Log, tmp_path: Path
) -> None:
    path = make(small_log, tmp_path)
    choices = ({}, {"velocity": "nope"}, {"action": "nope"}, {"episode": "nope"})
    n_said = 0
    for choice in choices:
        try:
            log = read_log(path, Columns(**choice))
        except FallowError as error:
            assert is_safe(str(error)), str(error)
            n_said += 1
        else:
            assert all(map(is_safe, (log.source, *log.actuators, *log.notes)))
    assert n_said  # at least the wrong choices


def test_names_in_memory_are_shown_escaped(small_log: Log) -> None:
    content = log_files.rows(small_log)
    content["\x1b[31mvelocity"] = content.pop("velocity")
    with pytest.raises(FallowError, match=r"\\x1b\[31mvelocity") as caught:
        from_data(content, name="here\x07")
    assert is_safe(str(caught.value)) and str(caught.value).startswith(r"here\x07")


def test_one_flipped_byte_in_a_folder_stops_no_other_log(
    run, small_log: Log, tmp_path: Path
) -> None:
    """HDF5 says so with many kinds of exceptions."""
    good = log_files.write("npz", small_log, tmp_path)
    bad = tmp_path / "run-v0.hdf5"
    log_files.write("minari", small_log, tmp_path)
    content = (tmp_path / "run-v0" / "data" / "main_data.hdf5").read_bytes()
    random, n_failures = np.random.default_rng(0), 0
    for _ in range(20):
        place = int(random.integers(8, 4000))  # where its structure lies
        broken = bytearray(content)
        broken[place] ^= 1 << int(random.integers(8))
        bad.write_bytes(broken)
        code, out, error = run("diagnose", bad, good)
        assert code in (0, 2), error
        assert "run.npz" in out and "discard" in out
        n_failures += code == 2
    assert n_failures > 2


def test_whatever_a_reader_raises_is_one_sentence_with_its_cause(
    small_log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a mistake of ours\nin two lines")

    path = log_files.write("npz", small_log, tmp_path)
    entries = {**READERS, "npz": replace(READERS["npz"], read=broken)}
    monkeypatch.setattr(READERS, "_entries", entries)
    with pytest.raises(
        FallowError, match=r"run\.npz cannot be read: .*two li"
    ) as found:
        read_log(path)
    assert isinstance(found.value.__cause__, KeyError) and is_safe(str(found.value))
    monkeypatch.setenv("FALLOW_DEBUG", "1")
    with pytest.raises(KeyError):
        read_log(path)


def test_a_reader_that_cannot_even_look_does_not_stop_the_others(
    small_log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bool:
        raise RuntimeError("no")

    path = log_files.write("npz", small_log, tmp_path)
    history = replace(READERS["history"], matches=broken)
    monkeypatch.setattr(READERS, "_entries", {**READERS, "history": history})
    assert read_log(path).n_episodes == 24


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"PK\x03\x04")
    assert reader.reason_of(PermissionError("x")) == "permission denied"
    with pytest.raises(FallowError, match=r"cannot be read: .*; it may be cut"):
        read_log(path)
