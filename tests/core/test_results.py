"""The table of results: what is written is read again, and bad tables are refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow.core.errors import FallowError
from fallow.core.results import COLUMNS, ResultRow, read_results, write_results

ROW = ResultRow(
    "walker-walk", "dreamer", "lean", "gain", "recency:window_transitions=20000", 3,
    "ab12", "f00d", 245_000, 45_000, 1, 61_250, 512.25, (500.5, 524.0), 1.0, None, 12.5,
)  # fmt: skip


def test_rows_come_back_as_they_were(tmp_path) -> None:
    path = write_results(tmp_path / "new" / "results.csv", [ROW] * 3)
    assert read_results(path) == [ROW] * 3


@given(st.text(st.characters(exclude_categories=["C"])), st.floats(0, 1) | st.none())
def test_any_name_and_share_comes_back(tmp_path_factory, name, share) -> None:
    row = ResultRow(*[name] * 5, 0, "", "", 1, 1, 0, 0, math.pi, (), auc=share)
    (back,) = read_results(
        write_results(tmp_path_factory.mktemp("t") / "results.csv", [row])
    )
    assert back.task == name
    assert back.mean_return == pytest.approx(math.pi, rel=1e-5)
    assert (back.auc is None) == (share is None)


def test_a_return_that_is_no_number_is_kept(tmp_path) -> None:
    row = ResultRow(*["a"] * 5, 0, "", "", 1, 1, 0, 0, math.nan, (math.nan,))
    (back,) = read_results(write_results(tmp_path / "results.csv", [row]))
    assert math.isnan(back.mean_return)


def test_bad_tables_are_refused_by_name(tmp_path) -> None:
    path = tmp_path / "results.csv"
    with pytest.raises(FallowError, match=r"no table of results at .*results\.csv"):
        read_results(path)
    path.write_text("task,colour\n")
    with pytest.raises(FallowError, match=r"missing columns agent.*unknown.*colour"):
        read_results(path)
    path.write_text(",".join(COLUMNS) + "\n" + ",".join(["x"] * len(COLUMNS)) + "\n")
    with pytest.raises(FallowError, match=r"line 2.*'x'"):
        read_results(path)
