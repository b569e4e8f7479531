"""`fallow diagnose` and `fallow simulate`, end to end and on bad input."""

import csv
import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import log_files
import numpy as np
import pytest

from fallow import cli
from fallow.dynamics import TASKS, Worlds
from fallow.dynamics.scripted import Scripted
from fallow.logs import HistoryWriter, read_history
from fallow.logs.log import Log
from fallow.logs.readers import read_log
from fallow.logs.simulate import simulate
from fallow.response import Example, example

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
SMALL = Example(n_episodes=24, change_points=(12,), n_steps=40)


@pytest.fixture(scope="module")
def log() -> Log:
    return example(SMALL)


@pytest.fixture
def run(capsys: pytest.CaptureFixture):
    """Run a command: exit code, stdout, stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


def diagnosis(run, *arguments: object) -> dict:
    code, out, error = run("diagnose", *arguments, "--json")
    assert code == 0, error
    return json.loads(out)


def test_json_has_what_machines_need(run, log: Log, tmp_path: Path) -> None:
    path = log_files.write("history", log, tmp_path)
    found = diagnosis(run, path)
    assert found["decision"] == "discard" and found["rule"] == "recency"
    assert found["auc"] == 1.0
    assert found["magnitude"] == pytest.approx(0.5, abs=0.05)
    low, high = found["magnitude_interval"]
    assert low < found["magnitude"] < high
    assert found["change_points"] == [12]
    assert found["stale"] == [True] * 12 + [False] * 12
    assert found["gates"]["auc"] == {
        "threshold": 0.87,
        "passed": True,
        "margin": pytest.approx(0.13),
    }
    assert [s["stale"] for s in found["segments"]] == [True, False]
    assert found["settings"]["variant"] == "joint"
    assert found["settings"]["scale"] == "mad"
    assert found["truth"]["change_points"] == [12]


def test_the_terminal_has_a_table_and_advice(run, log: Log, tmp_path: Path) -> None:
    path = log_files.write("d4rl", log, tmp_path)
    code, out, _ = run("diagnose", path)
    assert code == 0
    words = " ".join(out.split())
    for expected in (
        "24 episodes, 960 transitions, 3 actuators",
        "note: guessed actions: actions[0:3]; velocities: infos/qvel[1:4]",
        "0 to 11",
        "AUC 1.00 0.87 discard",
        "Discard the old data: the response changed at episode 12",
        "Response is not gain",
    ):
        assert expected in words


def test_no_change_is_said_plainly(run, tmp_path: Path) -> None:
    path = log_files.write("npz", example(Example((1.0,), (), 60, 50)), tmp_path)
    _, out, _ = run("diagnose", path)
    words = " ".join(out.split())
    assert "Keep the old data: no change of the actuator response in 60" in words


@pytest.mark.parametrize("variant", ["joint", "mean", "large"])
def test_variants(run, variant: str, log: Log, tmp_path: Path) -> None:
    path = log_files.write("npz", log, tmp_path)
    found = diagnosis(run, path, "--variant", variant)
    assert found["settings"]["variant"] == variant
    assert found["change_points"] == [12]


def test_exit_codes_for_ci(run, log: Log, tmp_path: Path) -> None:
    gone = log_files.write("npz", log, tmp_path)
    kept = log_files.write("csv", example(Example((1.0,), (), n_episodes=12)), tmp_path)
    assert run("diagnose", gone)[0] == 0
    assert run("diagnose", gone, "--ci")[0] == 10
    assert run("diagnose", kept, "--ci")[0] == 0
    assert run("diagnose", kept, gone, "--ci")[0] == 10
    assert run("diagnose", tmp_path / "none.npz", "--ci")[0] == 2


def test_a_folder_gives_a_table(run, log: Log, tmp_path: Path) -> None:
    log_files.write("history", log, tmp_path)
    log_files.write("npz", example(Example((1.0,), (), n_episodes=12)), tmp_path)
    code, out, _ = run("diagnose", tmp_path)
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["run.fallow", "discard"] in [row[:2] for row in rows]
    assert ["run.npz", "keep"] in [row[:2] for row in rows]
    both = json.loads(run("diagnose", tmp_path, "--json")[1])
    assert [entry["decision"] for entry in both] == ["discard", "keep"]


def test_one_bad_log_among_several_is_a_row(run, log: Log, tmp_path: Path) -> None:
    log_files.write("history", log, tmp_path)
    short = example(Example((1.0,), (), n_episodes=4))
    log_files.write("npz", short, tmp_path)
    page = tmp_path / "page.html"
    code, out, _ = run("diagnose", tmp_path, "--html", page, "--ci")
    assert code == 2
    assert "bad input" in out and "4 episodes with actions" in " ".join(out.split())
    assert "4 episodes with actions" in page.read_text()
    both = json.loads(run("diagnose", tmp_path, "--json")[1])
    assert "error" in both[1] and both[0]["decision"] == "discard"


def test_the_page_is_whole_and_needs_no_network(run, log: Log, tmp_path: Path) -> None:
    path, page = log_files.write("npz", log, tmp_path), tmp_path / "out" / "page.html"
    assert run("diagnose", path, "--html", page)[0] == 0
    text = page.read_text()
    assert text.count("<svg") == 5  # the mean, three joints, the plane
    assert "Discard the old data" in text and "prefers-color-scheme: dark" in text
    for loader in ("<script", "<link", "<img", "@import", "url(http", " src="):
        assert loader not in text
    assert "default-src 'none'; style-src 'unsafe-inline'\"" in text
    for colour in ("#1f2328", "#2b6c99"):
        assert colour not in text.split("</style>")[1]
    run("diagnose", path, "--html", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == text


HOSTILE = "<script>alert(1)</script>--> $x^ \\frac{ & \"'"


def test_a_column_name_is_text_and_nothing_else(run, log: Log, tmp_path: Path) -> None:
    path, page = tmp_path / "<b>&.csv", tmp_path / "page.html"
    content = log_files.rows(log)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["episode", "v", HOSTILE])
        columns = (content["episode"], content["velocity"][:, 0])
        writer.writerows(zip(*columns, content["action"][:, 0], strict=True))
    code, out, error = run("diagnose", path, "--action", HOSTILE, "--html", page)
    assert code == 0, error
    text = page.read_text()
    assert "<script" not in text and "<b>&." not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "[red]" not in out


def test_a_name_that_looks_like_markup_is_shown_as_it_is(run, tmp_path: Path) -> None:
    for name in ("[red]a.npz", "[bold]b.npz"):
        log_files.write_npz(
            example(Example((1.0,), (), n_episodes=12)), tmp_path / name
        )
    code, out, _ = run("diagnose", tmp_path)
    assert code == 0 and "[red]a.npz" in out and "[bold]b.npz" in out


def test_the_same_decision_without_the_regime_column(run, tmp_path: Path) -> None:
    path, blind = tmp_path / "a.fallow", tmp_path / "b.fallow"
    simulate("cheetah-run", "gain:shift_frame=12000", 24, 1, path)
    history = read_history(path)
    with HistoryWriter(blind, replace(history.header, about={})) as writer:
        for episode in history.episodes:
            writer.add(replace(episode, regime=None, start_state=None))
    seen, unseen = diagnosis(run, path), diagnosis(run, blind)
    assert seen["truth"] == {"change_points": [12], "auc": 1.0, "magnitude": 0.5}
    assert unseen["truth"] is None
    for name in ("path", "truth"):
        seen.pop(name), unseen.pop(name)
    assert seen == unseen
    assert seen["change_points"] == [12] and seen["decision"] == "discard"


@pytest.mark.parametrize(
    ("task", "condition", "expected"),
    [
        ("walker-walk", "none", []),
        ("walker-walk", "gain:shift_frame=15000", [15]),
        ("walker-walk", "recurring:shift_frame=10000,period_frames=10000", [10, 20]),
        ("cheetah-run", "damage:shift_frame=15000", [15]),
    ],
)
def test_simulated_bodies(
    run, task: str, condition: str, expected: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "h.fallow"
    code, out, error = run(
        *("simulate", task, "--condition", condition),
        *("--episodes", 30, "-o", path),
    )
    assert code == 0, error
    assert f"30 episodes of {task} under" in out
    found = diagnosis(run, path)
    assert found["truth"]["change_points"] == expected
    assert len(found["change_points"]) == len(expected)
    for at, true in zip(found["change_points"], expected, strict=True):
        assert abs(at - true) <= 2


@pytest.mark.parametrize("task", TASKS)
def test_every_task_can_be_simulated(task: str, tmp_path: Path) -> None:
    simulate(task, "none", 1, 3, tmp_path / "a.fallow")
    episode = read_history(tmp_path / "a.fallow").episodes[0]
    moved = episode.observation[:, list(Worlds(task).task.body.actuator_velocity)]
    assert episode.n_transitions == 500
    assert (episode.action.std(axis=0) > 0.1).all()
    assert (moved.std(axis=0) > 1e-3).all()


def test_simulating_follows_from_the_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        simulate("pendulum-swingup", "gain", 2, seed, tmp_path / name)
    contents = [(tmp_path / name).read_bytes() for name in "abc"]
    assert contents[0] == contents[1] != contents[2]
    assert not list(tmp_path.glob("*.part"))


def test_the_scripted_amplitude_drifts() -> None:
    policy = Scripted(6, 0.05, seed=2)
    sizes = [policy.actions(e, 500).std() for e in range(0, 160, 10)]
    assert max(sizes) > 1.8 * min(sizes)
    assert np.abs(policy.actions(0, 500)).max() <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("walker-wlk", "-o", "a"), "did you mean 'walker-walk'"),
        (("walker-walk", "--condition", "gian", "-o", "a"), "did you mean 'gain'"),
        (("walker-walk", "--episodes", "0", "-o", "a"), "1 or more"),
        (("walker-walk", "--seed", "-1", "-o", "a"), "0 or more"),
        (("walker-walk", "-o", "there"), "is there already"),
    ],
)
def test_bad_simulations(
    run, arguments: tuple, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").write_text("mine")
    code, _, error = run("simulate", *arguments)
    assert code == 2 and message in error
    assert Path("there").read_text() == "mine" and not Path("a").exists()


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


def _bad_value(value: float, name: str):
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
            file[f"episode_{index}/observations"] = velocity[cut:]
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


def _cut(name: str, share: float, inner: str = ""):
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


BAD = {
    "missing file": (_missing, "there is no file or folder at"),
    "not a log": (_text, "is not a log of a known format; known: history, npz"),
    "random bytes": (_noise, "is not a log of a known format"),
    "empty file": (_empty, "is empty"),
    "empty folder": (_empty_folder, "holds no log of a known format"),
    "header only": (_header_only, "a header and no rows"),
    "words in a table": (_words, "could not convert string 'fast'"),
    "ragged table": (_ragged, "no table of numbers"),
    "fewer than ten episodes": (_few, "9 episodes with actions, and 10 are needed"),
    "one-sample episode": (_one_sample, "episode 5 has 0 transitions and needs 2"),
    "NaN velocity": (_bad_value(np.nan, "velocity"), "is nan in episode 2"),
    "infinite velocity": (_bad_value(-np.inf, "velocity"), "is -inf in episode 2"),
    "huge action": (_bad_value(1e200, "action"), "is 1e+200 in episode 2"),
    "NaN action": (_bad_value(np.nan, "action"), "is nan in episode 2"),
    "actions all zero": (_zero, "no episode has an action"),
    "columns that do not match": (_columns_differ, "3 action columns"),
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
    "cut mcap": (_cut("mcap", 0.6), "cut short or damaged"),
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
def test_bad_input(run, name: str, log: Log, tmp_path: Path) -> None:
    make, expected = BAD[name]
    code, out, error = run("diagnose", make(log, tmp_path))
    assert code == 2 and out == ""
    one_sentence(error)
    assert any(words in error for words in expected.split("|")), error


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
        (("--episode-steps", "2"), "needs 3 rows or more"),
        (("--episode-steps", "100000"), "0 episodes with actions"),
    ],
)
def test_wrong_columns(
    run, arguments: tuple, expected: str, log: Log, tmp_path: Path
) -> None:
    code, _, error = run("diagnose", _good(log, tmp_path), *arguments)
    assert code == 2
    one_sentence(error)
    assert expected in error


def test_no_path_and_unwritable_pages(run, log: Log, tmp_path: Path) -> None:
    code, _, error = run("diagnose")
    assert code == 2 and "name a log" in error
    code, _, error = run("diagnose", _good(log, tmp_path), "--html", tmp_path)
    assert code == 2
    one_sentence(error)


@pytest.mark.parametrize("name", log_files.WRITERS)
def test_damaged_files_never_end_in_a_traceback(
    run, name: str, log: Log, tmp_path: Path
) -> None:
    """Cut anywhere, or with bytes overwritten: a decision or one sentence."""
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


def test_dates_and_short_remainders_do_no_harm(run, log: Log, tmp_path: Path) -> None:
    content = log_files.rows(log)
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


COLD = """
import sys
from fallow.cli import main
code = main(["diagnose", sys.argv[1], "--html", sys.argv[2]])
heavy = {"jax", "torch", "mujoco", "dm_control", "gymnasium"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy or code else 0)
"""


def test_diagnose_never_imports_jax(log: Log, tmp_path: Path) -> None:
    path = log_files.write("history", log, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(path), str(tmp_path / "page.html")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_truth_of_a_history_follows_its_condition(tmp_path: Path) -> None:
    simulate("walker-walk", "damage:shift_frame=1000", 2, 0, tmp_path / "a.fallow")
    log = read_log(tmp_path / "a.fallow")
    assert log.regime.tolist() == [0, 1]
    assert log.gain.tolist() == [[1] * 6, [1, 0, 1, 1, 1, 1]]
