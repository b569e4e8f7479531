"""Speed beside the authors' programs: the arithmetic, the table, what is refused."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import peers
import torch_peer


def program(name: str, n_branches: int, seconds: list[float]) -> peers.Program:
    """Turns that take these seconds, half of them on the CPU."""
    turns = iter([peers.Clocks(s, s / 2) for s in seconds])
    return peers.Program(name, "float32", n_branches, 1000, lambda n: next(turns))


def checkout(path: Path, agent: str = "dreamer") -> str:
    file = path / peers.PEERS[agent][1]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return str(path)


def test_programs_take_turns_and_ratios_are_of_the_turn_before() -> None:
    """In updates of all branches: the peer 1, 2, 4, 2, 5, 2 a second, ours by hand."""
    peer = program("peer", 1, [2, 1, 0.5, 1, 0.4, 1])
    one = program("ours", 1, [0.5, 0.4, 0.2])
    two = program("ours", 2, [1, 0.5, 2])
    timed = peers.interleaved(peer, [one, two], n_rounds=3, n_updates=2)
    assert [turn.wall for turn in timed[0].peer] == [1, 4, 5]
    assert [turn.wall for turn in timed[0].ours] == [4, 5, 10]
    assert [turn.wall for turn in timed[1].ours] == [4, 8, 2]
    assert [turn.cpu for turn in timed[1].ours] == [8, 16, 4]
    assert timed[0].ratio("wall") == (5 / 4, 5 / 4, 4)  # turns: 4, 5/4, 2
    assert timed[1].ratio("wall") == (2, 1, 4)
    assert timed[1].ratio("cpu") == (2, 1, 4)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_table(device: str) -> None:
    peer, one = program("peer abc1234", 1, [2, 1]), program("fallow", 40, [10, 4])
    timed = peers.interleaved(peer, [one], n_rounds=2, n_updates=10)
    lines = peers.table(peer, [one], timed, device).splitlines()
    cells = [[cell for cell in line.split("  ") if cell] for line in lines]
    cells = [[cell.strip() for cell in line] for line in cells]
    more = device == "cpu"  # where CPU time is compared as well
    start = ["program", "type", "device", "branches", "parameters", "updates/s"]
    assert cells == [
        [*start, "ratio", *["ratio, CPU time"] * more],
        ["peer abc1234", "float32", device, "1", "1,000", "7.5 (5 to 10)"]
        + ["1"] * (1 + more),
        ["fallow", "float32", device, "40", "1,000", "70 (40 to 100)"]
        + ["9.33 (8 to 10)"] * (1 + more),
    ]


def test_numbers_keep_three_digits() -> None:
    assert peers.Spread(0.12345, 0.1, 12.34).text() == "0.123 (0.1 to 12.3)"
    assert peers.Spread(1234.4, 99.96, 2e4).text() == "1,234 (100 to 20,000)"


def test_sizes_that_differ_are_said_aloud() -> None:
    assert "same sizes" in peers.sizes_line(1000, 1020)
    assert "differ by 0.00%" in peers.sizes_line(18_708_003, 18_708_003)
    line = peers.sizes_line(1000, 979)
    assert line.startswith("NOT THE SAME SIZES: 979 parameters are 2.1% away")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "--peer"),
        (["--peer", "nowhere"], "nowhere has no dreamer.py; clone https://github.com/"),
        (["--agent", "tdmpc", "--peer", "."], "clone https://github.com/nicklashansen"),
        (["--peer", "HERE", "--branches", "0"], "must be 1 or more"),
        (["--peer", "HERE", "--rounds", "-1"], "must be 1 or more"),
        (["--peer", "HERE", "--python", "no-python"], "no-python is no program"),
        (["--peer", "HERE", "--compute", "float16"], "invalid choice: 'float16'"),
    ],
)
def test_arguments_that_are_refused(
    given: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = checkout(tmp_path)
    with pytest.raises(SystemExit):
        peers.arguments([here if word == "HERE" else word for word in given])
    assert message in capsys.readouterr().err


def test_arguments_that_are_taken(tmp_path: Path) -> None:
    given = peers.arguments(["--agent", "tdmpc", "--peer", checkout(tmp_path, "tdmpc")])
    assert (given.branches, given.device, given.compute) == ([1, 40], "gpu", None)


def process(tmp_path: Path, script: str) -> peers.PeerProcess:
    """A shell script where the Python of the peer is expected."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    given = Namespace(python=str(python), agent="dreamer", peer=".")
    with (tmp_path / "printed").open("w+") as printed:
        return peers.PeerProcess(given, {"device": "cpu"}, printed)


def test_a_peer_answers_in_lines(tmp_path: Path) -> None:
    asked = """echo '{"parameters": 5}'; while read n; do echo "[$n.5, 0.25]"; done"""
    peer = process(tmp_path, asked)
    assert peer.about == {"parameters": 5}
    assert [peer.run(3), peer.run(4)] == [(3.5, 0.25), (4.5, 0.25)]


@pytest.mark.parametrize(
    ("script", "message", "printed"),
    [
        ("""echo '{"error": "no GPU"}'""", "peers: no GPU", ""),
        ("echo Segmentation fault >&2; exit 1", "the peer ended", "Segmentation"),
    ],
)
def test_a_peer_that_cannot_start_ends_the_run(
    script: str,
    message: str,
    printed: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match=message):
        process(tmp_path, script)
    assert printed in capsys.readouterr().err


@pytest.mark.parametrize("agent", peers.PEERS)
def test_a_missing_torch_is_one_sentence(
    agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(torch_peer.PeerError, match=r"needs torch.* in .*--python"):
        torch_peer.started(agent, Path("checkout"), {"device": "cpu"})


def test_batches_must_have_the_same_sizes() -> None:
    torch_peer.check_batch((16, 64), {"batch": [16, 64]})
    with pytest.raises(torch_peer.PeerError, match=r"is \[16, 32\] and ours"):
        torch_peer.check_batch((16, 32), {"batch": [16, 64]})


def test_settings_are_merged_level_by_level() -> None:
    base = {"a": 1, "encoder": {"units": 2, "layers": 3}}
    changed = torch_peer.merged(base, {"a": 4, "encoder": {"units": 5}})
    assert changed == {"a": 4, "encoder": {"units": 5, "layers": 3}}
    assert base["encoder"]["units"] == 2


def test_another_device_than_a_card_by_default() -> None:
    def network(width: int = 5, device: str = "cuda") -> tuple[int, str]:
        return width, device

    torch_peer.replace_default(network, "cuda", "cpu")
    assert network() == (5, "cpu")


def test_what_is_left_out_of_a_peer() -> None:
    """Every name is a class, but none of those by which Python knows a module."""
    stub = torch_peer.Stub("gym")
    assert issubclass(stub.Wrapper, object) and not hasattr(stub, "__file__")
