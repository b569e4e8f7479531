"""`fallow.diagnose` from Python and notebooks, and its JSON."""

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import log_files
import numpy as np
import pytest
from conftest import diagnosis
from hypothesis import given, settings
from hypothesis import strategies as st

import fallow
import fallow.logs
from fallow.core.errors import FallowError
from fallow.diagnosis import Example, example
from fallow.diagnosis.pipeline import Failure, diagnose_log
from fallow.diagnosis.serialize import as_json, dumps, plain
from fallow.logs.columns import Columns
from fallow.logs.log import Log
from fallow.logs.simulate import simulate

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def test_a_path_and_a_log_give_the_same(small_log: Log, tmp_path: Path) -> None:
    path = log_files.write("npz", small_log, tmp_path)
    by_text, by_path = fallow.diagnose(str(path)), fallow.diagnose(path)
    by_log = fallow.diagnose(fallow.read_log(path))
    assert by_text.to_dict() == by_path.to_dict() == by_log.to_dict()
    assert by_log.decision.discard and len(by_log.joints) == 3


def test_columns_are_names_in_a_list_or_text(small_log: Log, tmp_path: Path) -> None:
    path = log_files.write("csv", small_log, tmp_path)
    guessed = fallow.diagnose(path)
    names = path.read_text().splitlines()[0].split(",")
    velocity = [name for name in names if "vel" in name]
    action = list(guessed.log.actuators)
    assert len(velocity) == len(action) == 3
    for choice in (list, tuple, ",".join):
        chosen = fallow.diagnose(path, velocity=choice(velocity), action=choice(action))
        assert chosen.decision.segments == guessed.decision.segments
    backwards = fallow.diagnose(path, velocity=velocity[::-1], action=action[::-1])
    assert backwards.log.actuators == tuple(action[::-1])


def test_data_in_memory_goes_through_the_logs_package(
    small_log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def from_data(data: Any, columns: Columns | None = None, *, name: str = "") -> Log:
        seen.update(data=data, columns=columns)
        return replace(small_log, source="data")

    monkeypatch.setattr(fallow.logs, "from_data", from_data, raising=False)
    data = {"v": np.zeros((4, 2)), "a": np.zeros((4, 2)), "ep": np.zeros(4)}
    found = fallow.diagnose(
        data, velocity=["v1", "v2"], action=["a1", "a2"], episode="e"
    )
    assert seen["data"] is data
    assert seen["columns"] == Columns("v1,v2", "a1,a2", "e", None, None)
    assert found.log.source == "data" and found.decision.discard


def test_settings_reach_the_selector(small_log: Log) -> None:
    found = fallow.diagnose(small_log, variant="mean", stale_by="any_joint")
    assert found.decision.response.variant == "mean"
    assert found.decision.stale_by == "any_joint"
    with pytest.raises(FallowError, match="unknown variant"):
        fallow.diagnose(small_log, variant="means")
    with pytest.raises(TypeError, match="penalty"):
        fallow.diagnose(small_log, penalty="3")
    with pytest.raises(FallowError, match="a Log has its columns already"):
        fallow.diagnose(small_log, velocity="a")


def test_notebooks_show_a_summary(small_log: Log) -> None:
    found = fallow.diagnose(small_log)
    assert repr(found).startswith(
        "<Diagnosis of example, seed 0: Keep episodes 12 to 23"
    )
    page = found._repr_html_()
    assert page.count("<table") == page.count("</table>") == 4
    assert "joint 2" in page and "Keep episodes 12 to 23" in page
    for loader in ("<script", "<link", "<style", "<img", "url(", "http", "@import"):
        assert loader not in page
    styles = " ".join(re.findall(r'style="([^"]*)"', page))
    assert "color" not in styles and "#" not in styles  # light and dark alike


COLD = """
import sys
import fallow
assert fallow.__version__ and "diagnose" in dir(fallow)
heavy = {"numpy", "scipy", "jax", "mujoco", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
diagnose = fallow.diagnose
assert fallow.diagnose is diagnose and callable(fallow.read_log)
assert not {"jax", "mujoco", "torch"} & set(sys.modules)
"""


def test_importing_fallow_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_public_names_exist_and_others_do_not() -> None:
    for name in fallow.__all__:
        assert getattr(fallow, name) is not None
    with pytest.raises(AttributeError, match="'diagnosed'"):
        _ = fallow.diagnosed


def strict(text: str) -> Any:
    """Read JSON that has no NaN and no Infinity, which are not JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refuse)


@settings(max_examples=60, deadline=None)
@given(
    gains=st.lists(st.sampled_from([0.0, 1e-9, 0.3, 1.0, 4.0]), min_size=1, max_size=4),
    n_joints=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    constant=st.booleans(),
    stale_by=st.sampled_from(["mean", "any_joint"]),
)
def test_every_decision_is_valid_json(
    gains: list[float], n_joints: int, seed: int, constant: bool, stale_by: str
) -> None:
    """Dead joints and constant velocities lead to infinite z and undefined ratios."""
    places = tuple(range(8, 8 * len(gains), 8))
    log = example(Example(tuple(gains), places, 8 * len(gains) + 8, 6, n_joints), seed)
    if constant:
        log = replace(log, velocity=np.round(log.velocity))
    found = diagnose_log(log, stale_by=stale_by)
    content = strict(dumps([found]))
    assert content == as_json(found) == found.to_dict()
    assert strict(dumps([found, found])) == [content, content]


numbers = st.floats() | st.integers() | st.none() | st.booleans() | st.text()
trees = st.recursive(
    numbers | st.floats(width=32).map(np.float32) | st.floats().map(np.array),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner)
    ),
)


@given(trees)
def test_plain_values_are_finite_or_null(tree: Any) -> None:
    found = plain(tree)
    assert strict(json.dumps(found)) == found
    if isinstance(tree, float):
        assert found == (tree if math.isfinite(tree) else None)


def test_a_body_that_comes_back_from_nothing(run, tmp_path: Path) -> None:
    """The true magnitude divides by a gain of zero here, and was -inf."""
    path = tmp_path / "h.fallow"
    condition = (
        "damage:actuator=0,schedule=recurring,shift_frame=8000,period_frames=8000"
    )
    simulate("cartpole-swingup", condition, 24, 0, path)
    found = diagnosis(run, path)
    assert found["truth"]["magnitude"] is None and found["magnitude"] is None
    assert found["abrupt_change_points"] == found["truth"]["change_points"] == [8, 16]
    assert [s["stale"] for s in found["stretches"]] == [False, True, False]
    assert strict(run("diagnose", path, "--json")[1]) == found


def test_failures_are_json_too() -> None:
    failure = Failure("a.csv", "it is empty")
    assert strict(dumps([failure])) == {"path": "a.csv", "error": "it is empty"}
