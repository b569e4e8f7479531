"""A log that claims to be huge, waits for somebody or leads elsewhere is refused.

Memory is the peak of a process that reads the file, beyond what it had before.
"""

import io
import json
import os
import socket
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import log_files
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import ros_files
import zstandard
from mcap.records import Chunk
from mcap.writer import Writer

from fallow.core.errors import FallowError
from fallow.core.sizes import machine_memory, parse_size, size_text
from fallow.logs import Columns, read_log
from fallow.logs.log import Log

MB = 1 << 20
LIMIT_MB, DECLARED_MB = 100, 512
ROWS = DECLARED_MB * MB // 64
"""Of eight float64."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def d4rl(path: Path) -> None:
    """Shapes without data: every number is the fill value."""
    with h5py.File(path, "w") as file:
        for name in ("qvel", "actions"):
            file.create_dataset(name, (ROWS, 8), "f8", chunks=(1024, 8))
        file.create_dataset("terminals", (ROWS,), "i1", chunks=(1024,))


def minari(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name in ("qvel", "actions"):
            group = file.require_group("episode_0")
            group.create_dataset(name, (ROWS, 8), "f8", chunks=(1024, 8))


def hdf5_block(path: Path) -> None:
    """A small array whose one compressed block is large."""
    with h5py.File(path, "w") as file:
        options = {"maxshape": (None,), "chunks": (128 * MB // 8,), "compression": 1}
        file.create_dataset("qvel", data=np.ones(1000), **options)
        file["actions"] = np.ones(1000)


def parquet(path: Path) -> None:
    column = pa.array(np.zeros(2 * MB))
    table = pa.table({"action": column, "qvel": column, "episode_index": column})
    with pyarrow.parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(DECLARED_MB // 16):
            writer.write_table(table)


def minari_arrow(path: Path) -> None:
    (path / "data" / "0").mkdir(parents=True)
    (path / "data" / "metadata.json").write_text("{}")
    column = log_files.lists(np.zeros((MB // 4, 8)))
    batch = pa.record_batch({"actions": column, "qvel": column})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    target = path / "data" / "0" / "part-0.arrow"
    with pa.ipc.new_file(target, batch.schema, options=options) as writer:
        for _ in range(DECLARED_MB // 16):
            writer.write_batch(batch)


def zeros(compressed: io.BytesIO, n_bytes: int) -> bytes:
    with zstandard.ZstdCompressor().stream_writer(compressed, closefd=False) as stream:
        for _ in range(n_bytes // MB):
            stream.write(bytes(MB))
    return compressed.getvalue()


def mcap(path: Path, declared: int = DECLARED_MB * MB) -> None:
    content = zeros(io.BytesIO(), DECLARED_MB * MB)
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        chunk = Chunk("zstd", content, 0, 0, 0, declared)
        chunk.write(writer._Writer__record_builder)
        writer._Writer__flush()
        writer.finish()


def mcap_that_lies(path: Path) -> None:
    mcap(path, declared=1000)


def npz(path: Path) -> None:
    """Headers only: the numbers are not even there."""
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (ROWS, 8)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("action", "velocity", "done"):
            archive.writestr(f"{name}.npy", header.getvalue())


def npz_deflated(path: Path) -> None:
    """Numbers that compress a thousand times."""
    np.savez_compressed(path, action=np.zeros(8 * MB), velocity=np.zeros(8 * MB))


def csv(path: Path) -> None:
    """As a crash leaves it: zeros to the end."""
    path.write_text("episode,v,action\n" + "0,1,2\n" * 1000)
    os.truncate(path, DECLARED_MB * MB)


def csv_of_one_line(path: Path) -> None:
    path.write_bytes(b"episode,v,action\n" + b"1" * (64 * MB))


def bag(path: Path) -> None:
    log = log_files.example_log()
    message = {"data": np.zeros(16 * MB)}
    event = (1.0, "/command", ros_files.DATA, message)
    ros_files.write_bag(log, path, [event], compression="LZ4")


def db3_zstd(path: Path) -> None:
    path.write_bytes(zeros(io.BytesIO(), DECLARED_MB * MB))


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "d4rl": ("a.hdf5", d4rl),
    "minari": ("a.hdf5", minari),
    "a block of HDF5": ("a.hdf5", hdf5_block),
    "parquet": ("a.parquet", parquet),
    "minari-arrow": ("set-v0", minari_arrow),
    "mcap": ("a.mcap", mcap),
    "mcap that lies": ("a.mcap", mcap_that_lies),
    "npz": ("a.npz", npz),
    "npz, deflated": ("a.npz", npz_deflated),
    "csv": ("a.csv", csv),
    "csv of one line": ("a.csv", csv_of_one_line),
    "ros1": ("a.bag", bag),
    "ros2, compressed": ("a.db3.zstd", db3_zstd),
}

READ = """
import json, sys, h5py, pyarrow.parquet, pyarrow.dataset, zstandard, lz4.frame
import rosbags.rosbag1, rosbags.rosbag2, rosbags.typesys
from fallow.core.errors import FallowError
from fallow.logs.readers import Columns, read_log

def memory(name):
    for line in open("/proc/self/status"):
        if line.startswith(name):
            return int(line.split()[1]) // 1024

options = json.loads(sys.argv[1])
for path in sys.argv[2:]:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before, said = memory("VmRSS"), "nothing"
    for steps in (100, None):  # some formats know where episodes end
        try:
            read_log(path, Columns(episode_steps=steps, **options))
        except FallowError as error:
            said = str(error)
        if "has no effect" not in said:
            break
    print(json.dumps([memory("VmHWM") - before, said]), flush=True)
"""


@pytest.fixture(scope="module")
def peaks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """By bomb: MB that reading it takes, and what is said; one process for all."""
    paths = []
    for name, (file_name, make) in BOMBS.items():
        paths.append(tmp_path_factory.mktemp(name.split()[0]) / file_name)
        make(paths[-1])
    options = json.dumps({"max_memory_bytes": LIMIT_MB * MB})
    done = subprocess.run(
        [sys.executable, "-c", READ, options, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, done.stdout.splitlines())
    return dict(zip(BOMBS, map(tuple, lines), strict=True))


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_declared_is_checked_before_it_is_loaded(
    name: str, peaks: dict[str, tuple[int, str]]
) -> None:
    peak, said = peaks[name]
    assert peak < LIMIT_MB, said
    assert BOMBS[name][0] in said and "\n" not in said
    assert any(why in said for why in ("--max-memory", "a NUL byte", "longer than"))


@pytest.mark.parametrize("name", log_files.WRITERS)
def test_every_reader_keeps_to_its_limit(
    name: str, small_log: Log, tmp_path: Path
) -> None:
    path = log_files.write(name, small_log, tmp_path)
    with pytest.raises(FallowError, match="--max-memory"):
        read_log(path, Columns(max_memory_bytes=3000))
    assert read_log(path, Columns(max_memory_bytes=5_000_000)).n_episodes == 24


def test_the_limit_on_the_command_line(run, small_log: Log, tmp_path: Path) -> None:
    path = log_files.write("npz", small_log, tmp_path)
    code, _, error = run("diagnose", path, "--max-memory", "3kB")
    assert code == 2 and "2.93 KiB is the limit; raise it with --max-memory" in error
    code, _, error = run("diagnose", path, "--max-memory", "much")
    assert code == 2 and "write a size such as 500MB or 4GiB" in error
    assert run("diagnose", path, "--max-memory", "1GiB")[0] == 0


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("4GiB", 4 << 30), ("500MB", 500_000_000), (" 2 g ", 2 << 30), ("1.5KiB", 1536)],
)
def test_sizes_as_text(text: str, n_bytes: int) -> None:
    assert parse_size(text, "--x") == n_bytes
    for wrong in ("", "0", "-1", "4 bananas", "1e3", "nan", "GiB"):
        with pytest.raises(FallowError, match="--x is"):
            parse_size(wrong, "--x")


def test_sizes_for_people() -> None:
    texts = [size_text(n) for n in (0, 999, 1000, 1 << 20, 1.86 * 2**30, 2**45)]
    assert texts == ["0 bytes", "999 bytes", "0.977 KiB", "1 MiB", "1.86 GiB", "32 TiB"]
    assert 1 << 28 < machine_memory() < 1 << 50


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(path))


def make_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


ENDLESS = {
    "a named pipe": make_fifo,
    "a socket": make_socket,
    "a device": make_link_to_a_device,
}


@pytest.mark.parametrize("kind", ENDLESS)
@pytest.mark.parametrize("suffix", ["csv", "hdf5", "mcap", "bag", "parquet", "fallow"])
def test_nobody_waits_for_a_pipe(kind: str, suffix: str, small_log: Log, run) -> None:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"fallow-{os.getpid()}"
    folder.mkdir()  # sockets need short paths
    try:
        ENDLESS[kind](folder / f"a.{suffix}")
        code, _, error = run("diagnose", folder / f"a.{suffix}")
        assert code == 2 and f"is {kind}, not a file" in error
        log_files.write("npz", small_log, folder)
        code, out, error = run("diagnose", folder)
        assert code == 0, error
        assert "24 episodes" in out
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("lerobot", "data/chunk-000/file-001.parquet"),
        ("minari", "data/metadata.json"),
        ("lerobot", "meta/info.json"),
    ],
)
def test_pipes_inside_a_data_set(
    name: str, inner: str, run, small_log: Log, tmp_path: Path
) -> None:
    path = log_files.write(name, small_log, tmp_path)
    (path / inner).unlink()
    os.mkfifo(path / inner)
    code, _, error = run("diagnose", path)
    assert code == 2 and error.count("\n") == 1


def test_a_pipe_among_recordings_is_left_out(small_log: Log, tmp_path: Path) -> None:
    path = log_files.write("mcap-json", small_log, tmp_path)
    os.mkfifo(path / "take-000.mcap")
    found = read_log(path)
    assert found.n_episodes == 24 and "is a named pipe" in found.notes[0]


def link(file: h5py.File, secret: Path) -> None:
    file["observations"] = h5py.ExternalLink(secret, "/observations")


def virtual(file: h5py.File, secret: Path) -> None:
    layout = h5py.VirtualLayout((984, 11), "f4")
    layout[:] = h5py.VirtualSource(secret, "observations", (984, 11))
    file.create_virtual_dataset("observations", layout)


def external(file: h5py.File, secret: Path) -> None:
    raw = [(str(secret), 0, 984 * 11 * 4)]
    file.create_dataset("observations", (984, 11), "f4", external=raw)


def loop(file: h5py.File, secret: Path) -> None:
    file["a/b"] = 1
    file["a/c"] = file["a"]


@pytest.mark.parametrize("lead", [link, virtual, external, loop])
@pytest.mark.parametrize("prefix", ["", "episode_0"])
def test_no_other_file_is_read(
    lead: Callable, prefix: str, small_log: Log, tmp_path: Path
) -> None:
    """Also in the layout of Minari."""
    secret = log_files.write("d4rl", small_log, tmp_path)
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        group = file.require_group(prefix) if prefix else file
        group["actions"] = log_files.rows(small_log)["action"]
        group["timeouts"] = np.arange(984) % 41 == 40
        lead(group, secret)
    with pytest.raises(FallowError, match=r"another file|in a circle"):
        read_log(path, Columns(velocity="observations[8:11]"))


def test_lengths_in_a_message_are_not_believed(small_log: Log, tmp_path: Path) -> None:
    """A sequence in ROS 2's encoding that claims four billion numbers."""
    ros_files.write_ros2(small_log, tmp_path / "bag", plugin="MCAP")
    path = tmp_path / "bag" / "bag.mcap"
    content = path.read_bytes()
    count = struct.pack("<I", 3)
    path.write_bytes(content.replace(count, b"\xff\xff\xff\xff"))
    with pytest.raises(FallowError):
        read_log(path)
