"""The footer of parquet says what pyarrow says, and damage to it never ends Python."""

import subprocess
import sys
from pathlib import Path

import log_files
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fallow.core.errors import FallowError
from fallow.logs import Columns, read_log
from fallow.logs.log import Log
from fallow.logs.readers.columnar import declared
from fallow.logs.readers.parquet_footer import n_values_of

TABLE = pa.table(
    {
        "plain": np.arange(30.0),
        "flag": np.arange(30) % 2 == 0,
        "with.dots": log_files.lists(np.ones((30, 3))),
        "list": pa.array([[1.0, 2.0]] * 30),
        "ragged": pa.array([[1.0] * (i % 3) for i in range(30)]),
        "text": ["a"] * 30,
        "inner": pa.StructArray.from_arrays([np.arange(30), np.ones(30)], ["a", "b"]),
        "nothing": pa.array([None] * 30, pa.float64()),
        "pairs": pa.array([[("a", 1)]] * 30, pa.map_(pa.string(), pa.int64())),
    }
)


@pytest.mark.parametrize("rows", [7, 1000])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_counts_are_those_of_pyarrow(rows: int, version: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=rows, version=version)
    metadata, expected = pq.read_metadata(path), {}
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            name = column.path_in_schema
            expected[name] = expected.get(name, 0) + column.num_values
    assert n_values_of(path) == expected


def test_widths_of_lists_are_known_before_they_are_read(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    shapes = {name: d.shape for name, d in declared(tmp_path / "a.parquet").items()}
    assert shapes == {
        "plain": (30,),
        "flag": (30,),
        "with.dots": (30, 3),
        "list": (30, 2),
        "inner/a": (30,),
        "inner/b": (30,),
        "nothing": (30,),
    }


def test_lists_without_a_fixed_width(small_log: Log, tmp_path: Path) -> None:
    content = log_files.rows(small_log)
    table = {
        "action": pa.array(content["action"].tolist()),
        "qvel": pa.array(content["velocity"].tolist()),
        "episode_index": content["episode"],
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    found = read_log(tmp_path / "a.parquet")
    np.testing.assert_array_equal(found.action, small_log.action)
    table["qvel"] = pa.array(
        [row[: 2 + (i != 7)] for i, row in enumerate(content["velocity"].tolist())]
    )
    pq.write_table(pa.table(table), tmp_path / "b.parquet")
    with pytest.raises(FallowError, match="no column"):
        read_log(tmp_path / "b.parquet")
    table["qvel"] = pa.array([None, *content["velocity"].tolist()[1:]])
    pq.write_table(pa.table(table), tmp_path / "c.parquet")
    with pytest.raises(FallowError, match=r"different numbers of values|no column"):
        read_log(tmp_path / "c.parquet")


def test_one_long_list_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Ten million equal numbers in a row take some bytes."""
    values = pa.array(np.zeros(20_000_000))
    offsets = pa.array([0, 10_000_000, 20_000_000], pa.int32())
    column = pa.ListArray.from_arrays(offsets, values)
    table = pa.table({"action": column, "qvel": column, "episode_index": [0, 0]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(FallowError, match="10,000,000 columns and 10,000 is the limit"):
        read_log(tmp_path / "a.parquet", Columns(max_memory_bytes=1 << 20))


FLIPS = """
import sys
from pathlib import Path
import numpy as np
from fallow.core.errors import FallowError
from fallow.logs import read_log
path, data_set = Path(sys.argv[1]), Path(sys.argv[2])
content = path.read_bytes()
length = int.from_bytes(content[-8:-4], "little")
random, n_read = np.random.default_rng(0), 0
for _ in range(400):
    broken = bytearray(content)
    place = len(content) - 8 - length + int(random.integers(length))
    broken[place] ^= 1 << int(random.integers(8))
    path.write_bytes(broken)
    try:
        read_log(data_set)
        n_read += 1
    except FallowError:
        pass
print(n_read)
"""


def test_a_damaged_footer_never_ends_python(small_log: Log, tmp_path: Path) -> None:
    """`pyarrow` aborts where it is asked for damaged statistics of a column."""
    data_set = log_files.write("lerobot", small_log, tmp_path)
    path = data_set / "data" / "chunk-000" / "file-000.parquet"
    done = subprocess.run(
        [sys.executable, "-c", FLIPS, str(path), str(data_set)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert 50 < int(done.stdout) < 400  # most of a footer says nothing of the numbers
