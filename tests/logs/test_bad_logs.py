"""Bad logs end with one clear sentence and exit code 2, never with a traceback."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import log_files
import numpy as np
import pytest
from conftest import diagnosis

from fallow.diagnosis import Example, example
from fallow.logs.log import Log

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

Make = Callable[[Log, Path], Path]

# what is wrong, how to make such a file, and what the sentence must say


def _missing(log: Log, folder: Path) -> Path:
    return folder / "nowhere.fallow"


def _text(log: Log, folder: Path) -> Path:
    (folder / "a.md").write_text("# dear diary")
    return folder / "a.md"


def _noise(log: Log, folder: Path) -> Path:
    (folder / "a.bin").write_bytes(np.random.default_rng(0).bytes(5000))
    return folder / "a.bin"


def _empty(log: Log, folder: Path) -> Path:
    (folder / "a.csv").touch()
    return folder / "a.csv"


def _empty_folder(log: Log, folder: Path) -> Path:
    (folder / "logs").mkdir()
    return folder / "logs"


def _header_only(log: Log, folder: Path) -> Path:
    (folder / "a.csv").write_text("episode,v,action\n")
    return folder / "a.csv"


def _words(log: Log, folder: Path) -> Path:
    (folder / "a.csv").write_text("episode,v,action\n0,1,2\n0,fast,2\n")
    return folder / "a.csv"


def _ragged(log: Log, folder: Path) -> Path:
    (folder / "a.csv").write_text("episode,v,action\n0,1,2\n0,1\n")
    return folder / "a.csv"


def _few(log: Log, folder: Path) -> Path:
    return log_files.write("npz", example(Example((1.0,), (), 9, 20)), folder)


def _one_sample(log: Log, folder: Path) -> Path:
    content = log_files.rows(log)
    content["episode"] = content["episode"].astype(int)
    content["episode"][41 * 5] = 99  # a single row between two episodes
    content["episode"][41 * 5 + 1 :] += 100
    np.savez(folder / "a.npz", **content)
    return folder / "a.npz"


def _bad_value(value: float, name: str) -> Make:
    def make(log: Log, folder: Path) -> Path:
        content = log_files.rows(log)
        content[name] = content[name].copy()
        content[name][100, 1] = value
        np.savez(folder / "a.npz", **content)
        return folder / "a.npz"

    return make


def _zero(log: Log, folder: Path) -> Path:
    return log_files.write("csv", replace(log, action=log.action * 0), folder)


def _columns_differ(log: Log, folder: Path) -> Path:
    content = log_files.rows(log)
    content["velocity"] = content["velocity"][:, :2]
    np.savez(folder / "a.npz", **content)
    return folder / "a.npz"


def _rows_differ(log: Log, folder: Path) -> Path:
    content = log_files.rows(log)
    content["velocity"] = content["velocity"][:-7]
    np.savez(folder / "a.npz", **content)
    return folder / "a.npz"


def _minari_rows_differ(log: Log, folder: Path) -> Path:
    path = folder / "a.hdf5"
    with h5py.File(path, "w") as file:
        for index, (velocity, action) in enumerate(log_files.episodes(log)):
            cut = 5 if index == 7 else 0
            file[f"episode_{index}/infos/qvel"] = velocity[cut:]
            file[f"episode_{index}/actions"] = action
    return path


def _mixed_steps(log: Log, folder: Path) -> Path:
    content = log_files.rows(log)
    content["time"] = np.where(content["episode"] >= 9, 2.5, 1) * content["time"]
    np.savez(folder / "a.npz", **content)
    return folder / "a.npz"


def _mixed_dt(log: Log, folder: Path) -> Path:
    content = log_files.rows(log)
    np.savez(folder / "a.npz", dt=np.array([0.02, 0.05]), **content)
    return folder / "a.npz"


def _cut(name: str, share: float, inner: str = "") -> Make:
    def make(log: Log, folder: Path) -> Path:
        path = log_files.write(name, log, folder)
        content = (path / inner).read_bytes()
        (path / inner).write_bytes(content[: int(len(content) * share)])
        return path

    return make


def _wide(log: Log, folder: Path) -> Path:
    (folder / "a.csv").write_text(",".join(f"c{i}" for i in range(1_000_000)) + "\n")
    return folder / "a.csv"


def _pickle(log: Log, folder: Path) -> Path:
    (folder / "a.npz").write_bytes(pickle.dumps({"action": log.action}))
    return folder / "a.npz"


def _pickle_in_npz(log: Log, folder: Path) -> Path:
    np.savez(folder / "a.npz", **log_files.rows(log), info=np.array({"a": 1}, object))
    return folder / "a.npz"


def _no_episodes(log: Log, folder: Path) -> Path:
    content = log_files.rows(log)
    del content["episode"]
    np.savez(folder / "a.npz", **content)
    return folder / "a.npz"


def _scattered(log: Log, folder: Path) -> Path:
    content = log_files.rows(log)
    content["episode"] = content["episode"] % 5
    np.savez(folder / "a.npz", **content)
    return folder / "a.npz"


def _no_joints(log: Log, folder: Path) -> Path:
    from mcap.writer import Writer

    with (folder / "a.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start()
        writer.finish()
    return folder / "a.mcap"


def _good(log: Log, folder: Path) -> Path:
    return log_files.write("csv", log, folder)


def _history_of_nothing(log: Log, folder: Path) -> Path:
    (folder / "a.fallow").write_bytes(b"FALLOWH1")
    return folder / "a.fallow"


def _table(change: Callable[[list[str]], list[str]]) -> Make:
    """A table whose lines are changed."""

    def write(log: Log, folder: Path) -> Path:
        path = log_files.write("csv", log, folder)
        path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
        return path

    return write


def _named(name: str, content: bytes) -> Make:
    def write(log: Log, folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def _cell(text: str) -> Callable[[list[str]], list[str]]:
    """Another text in line 8, the last column."""

    def change(lines: list[str]) -> list[str]:
        cells = lines[7].split(",")
        lines[7] = ",".join([*cells[:-1], text])
        return lines

    return change


def _semicolons(lines: list[str]) -> list[str]:
    return [line.replace(",", ";").replace(".", ",") for line in lines]


BAD = {
    "a column more": (
        _table(lambda lines: lines[:9] + [line + ",7" for line in lines[9:]]),
        "line 10 of",
    ),
    "an empty cell": (_table(_cell("")), "a value is missing in column '"),
    "a word in a cell": (_table(_cell("off")), "string 'off' in column '"),
    "decimal commas": (_table(_semicolons), "write numbers with a decimal point"),
    "packed": (_named("a.csv.gz", b"\x1f\x8b\x08\0\0"), "unpack it first"),
    "UTF-16": (_named("a.csv", b"\xff\xfee\0p\0"), "save it as UTF-8"),
    "JSON lines": (_named("a.jsonl", b'{"a": 1}'), "fallow track reads JSON lines"),
    "JSON": (_named("a.json", b'[{"a": 1}]'), "one JSON object a line, as .jsonl"),
    "an array": (_named("a.npy", b"\x93NUMPY\x01\0"), "as CSV or npz"),
    "missing file": (_missing, "there is no file or folder at"),
    "not a log": (_text, "is not a log of a known format; known: history, npz"),
    "random bytes": (_noise, "is not a log of a known format"),
    "empty file": (_empty, "is empty"),
    "empty folder": (_empty_folder, "holds no log of a known format"),
    "header only": (_header_only, "a header and no rows"),
    "words in a table": (_words, "could not convert string 'fast'"),
    "ragged table": (_ragged, "not a table of numbers"),
    "fewer than ten episodes": (_few, "9 episodes with actions, and 10 are needed"),
    "one-sample episode": (_one_sample, "episode 5 has 0 transitions and needs 2"),
    "NaN velocity": (_bad_value(np.nan, "velocity"), "is nan in episode 2"),
    "infinite velocity": (_bad_value(-np.inf, "velocity"), "is -inf in episode 2"),
    "huge action": (_bad_value(1e200, "action"), "is 1e+200 in episode 2"),
    "NaN action": (_bad_value(np.nan, "action"), "is nan in episode 2"),
    "actions all zero": (_zero, "no episode has an action"),
    "columns that do not match": (_columns_differ, "of 3 actions (action[0:3])"),
    "rows that do not match": (_rows_differ, "984 rows|977 rows"),
    "rows of an episode": (_minari_rows_differ, "episode 7 has 40 actions and 36"),
    "mixed control steps": (_mixed_steps, "0.02 s in episode 0, 0.05 s in episode"),
    "mixed dt": (_mixed_dt, "mixes control steps"),
    "cut HDF5": (_cut("d4rl", 0.7), "cut short or damaged"),
    "cut Minari": (_cut("minari", 0.5, "data/main_data.hdf5"), "cut short or damaged"),
    "cut HDF5 head": (_cut("d4rl", 0.01), "cut short or damaged"),
    "cut parquet": (
        _cut("lerobot", 0.6, "data/chunk-000/file-001.parquet"),
        "cut short or damaged",
    ),
    "cut LeRobot info": (_cut("lerobot", 0.5, "meta/info.json"), "cut short"),
    "cut npz": (_cut("npz", 0.6), "cut short or damaged"),
    "cut mcap": (_cut("mcap", 0.6), "repair it with mcap recover, or read what"),
    "cut history": (_cut("history", 0.001), "no readable header|no finished episode"),
    "history of nothing": (_history_of_nothing, "no readable header"),
    "a million columns": (_wide, "columns and 10,000 is the limit"),
    "pickle": (_pickle, "holds a pickle"),
    "pickle in an archive": (_pickle_in_npz, "holds a pickle in 'info'"),
    "no episodes": (_no_episodes, "--episode-steps"),
    "scattered episodes": (_scattered, "rows of episode 0 are not together"),
    "recording without joints": (_no_joints, "holds no joint states"),
}


def one_sentence(error: str) -> None:
    assert error.startswith("fallow: ") and error.count("\n") == 1
    assert "Traceback" not in error and len(error) < 500


@pytest.mark.parametrize("name", BAD)
def test_bad_input(run, name: str, small_log: Log, tmp_path: Path) -> None:
    make, expected = BAD[name]
    code, out, error = run("diagnose", make(small_log, tmp_path))
    assert code == 2 and out == ""
    one_sentence(error)
    assert any(words in error for words in expected.split("|")), error


def test_bad_input_to_a_real_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fallow.cli", "diagnose", str(tmp_path / "no.npz")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ""
    one_sentence(done.stderr)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--velocity", "speed"), "unknown column for --velocity"),
        (("--action", "1_cmmd"), "did you mean '1_cmd'"),
        (("--velocity", "3:99"), "places go from 0 to 8"),
        (("--velocity", ","), "names no columns"),
        (("--velocity", "0_vel"), "3 action columns"),
        (("--velocity", "remark,0_vel,1_vel"), "could not convert string 'ok'"),
        (("--episode", "trial"), "unknown column for --episode"),
        (("--time", "when"), "unknown column for --time"),
        (("--episode-steps", "2"), "it must be a whole number, 3 or more"),
        (("--episode-steps", "100000"), "rows; choose a smaller one"),
    ],
)
def test_wrong_columns(
    run, arguments: tuple, expected: str, small_log: Log, tmp_path: Path
) -> None:
    code, _, error = run("diagnose", _good(small_log, tmp_path), *arguments)
    assert code == 2
    one_sentence(error)
    assert expected in error


def test_no_path_and_unwritable_pages(run, small_log: Log, tmp_path: Path) -> None:
    code, _, error = run("diagnose")
    assert code == 2 and "name a log" in error
    for command in ("diagnose", "track"):
        good = _good(small_log, tmp_path)
        code, out, error = run(command, good, "--html", tmp_path)
        assert (code, out) == (2, "") and "name a file in it" in error
        one_sentence(error)


@pytest.mark.parametrize("name", log_files.WRITERS)
def test_damaged_files_never_end_in_a_traceback(run, name: str, tmp_path: Path) -> None:
    """Cut anywhere, or with bytes overwritten: a decision or one sentence."""
    log = example(Example(n_episodes=12, change_points=(6,), n_steps=10))
    path = log_files.write(name, log, tmp_path)
    files = [p for p in sorted(tmp_path.rglob("*")) if p.is_file()]
    file = max(files, key=lambda p: p.stat().st_size)
    good, random = file.read_bytes(), np.random.default_rng(0)
    for trial in range(16):
        at = int(random.integers(len(good)))
        bad = good[:at] if trial % 2 else good[:at] + random.bytes(8) + good[at + 8 :]
        file.write_bytes(bad)
        code, _, error = run("diagnose", path)
        assert code in (0, 2)
        if code == 2:
            one_sentence(error)


def test_dates_and_short_remainders_do_no_harm(
    run, small_log: Log, tmp_path: Path
) -> None:
    content = log_files.rows(small_log)
    ends = np.append(content["episode"][1:] != content["episode"][:-1], True)
    lines = ["timestamp,done,v,action"]
    for end, v, a in zip(
        ends, content["velocity"][:, 0], content["action"][:, 0], strict=True
    ):
        lines.append(f"2026-11-15T05:00:00Z,{int(end)},{v},{a}")
    lines += ["2026-11-15T05:00:00Z,0,0,0"] * 2  # an episode that had hardly begun
    (tmp_path / "a.csv").write_text("\n".join(lines))
    found = diagnosis(run, tmp_path / "a.csv")
    assert found["n_episodes"] == 24 and found["change_points"] == [12]
    assert found["control_step_s"] is None


def test_a_pickle_never_runs(run, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "it ran",)

    (tmp_path / "a.npz").write_bytes(pickle.dumps(Bomb()))
    np.savez(tmp_path / "b.npz", a=np.array([Bomb()], dtype=object))
    for name in ("a.npz", "b.npz"):
        assert run("diagnose", tmp_path / name)[0] == 2
    assert not (tmp_path / "it ran").exists()
