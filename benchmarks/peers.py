"""Updates a second beside the authors' PyTorch programs, interleaved in one run.

    git clone https://github.com/NM512/dreamerv3-torch
    git -C dreamerv3-torch checkout 6ef8646
    pip install torch==2.13.0 ruamel.yaml
    python benchmarks/peers.py --peer dreamerv3-torch --branches 1 40

    git clone https://github.com/nicklashansen/tdmpc2
    git -C tdmpc2 checkout e9f5932
    pip install torch==2.13.0 tensordict==0.8.3 omegaconf
    python benchmarks/peers.py --agent tdmpc --peer tdmpc2 --branches 1 40

in an environment that has `fallow[fleet]`; without a GPU, with `--device cpu` and torch
by `--index-url https://download.pytorch.org/whl/cpu`, a far smaller download. There
torch.compile takes minutes and a C++ compiler; `--eager` does without.

The peers are NM512's DreamerV3 with its settings `dmc_proprio` and the official TD-MPC2
with its 5M parameters, both on walker-walk; ours is the preset `paper`, of the same
sizes. An update is one step of the learner, without environment: the peer repeats one
random batch on its device, ours samples and gathers its batches from replay on the
device. Peer and ours take turns, and a ratio compares ours with the peer's turn just
before. The peer runs in a process of its own (`torch_peer.py`), in this Python or in
that of `--python`, for torch and jax that need different libraries. It runs as its
settings say, with torch.compile where they ask for it.

A ratio is of updates a second; on a CPU also of updates per CPU second, which other
work on the machine disturbs less. There, `OMP_NUM_THREADS=1 taskset -c 0` before the
command keeps both on one core, without threads that wait for each other. Versions that
ran together: torch 2.13.0, tensordict 0.8.3, jax 0.10.2.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

TASK = "walker-walk"
PEERS = {
    "dreamer": ("https://github.com/NM512/dreamerv3-torch", "dreamer.py"),
    "tdmpc": ("https://github.com/nicklashansen/tdmpc2", "tdmpc2/tdmpc2.py"),
}
"""Where to get a peer, and a file of it."""
TRAINED = ("model", "actor", "critic")
"""Parts of a learner that gradients change; targets and optimisers are others."""
MAX_DIFFERENCE = 0.02
"""Of numbers of parameters, as a share of the peer's."""


class Clocks(NamedTuple):
    """Seconds of a turn or updates a second, by the wall clock and by CPU time."""

    wall: float
    cpu: float


class Program(NamedTuple):
    """One program on its device, ready to be timed."""

    name: str
    compute: str
    n_branches: int
    n_parameters: int
    """Trained, of one branch."""
    run: Callable[[int], Clocks]
    """So many updates of all branches."""


class Spread(NamedTuple):
    """A median and its range."""

    median: float
    low: float
    high: float

    def text(self) -> str:
        """With three significant digits, more for thousands."""
        median, low, high = (f"{x:,.0f}" if x >= 100 else f"{x:.3g}" for x in self)
        return f"{median} ({low} to {high})"


class Timed(NamedTuple):
    """Updates/s of a program's branches, and of the peer in the turn before each."""

    ours: list[Clocks]
    peer: list[Clocks]

    def ratio(self, clock: str) -> Spread:
        """Ours to the peer's by one of the clocks."""
        return ratio(*([getattr(turn, clock) for turn in turns] for turns in self))


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def ratio(rates: Sequence[float], peer_rates: Sequence[float]) -> Spread:
    """Of the medians; its range is that of the turns, each to the peer's before it."""
    turns = [ours / peer for ours, peer in zip(rates, peer_rates, strict=True)]
    medians = statistics.median(rates) / statistics.median(peer_rates)
    return Spread(medians, min(turns), max(turns))


def interleaved(
    peer: Program, ours: Sequence[Program], n_rounds: int, n_updates: int
) -> list[Timed]:
    """Peer, ours, peer, ours …, the programs in order, so many rounds."""
    timed = [Timed([], []) for _ in ours]
    for _ in range(n_rounds):
        for program, result in zip(ours, timed, strict=True):
            result.peer.append(rate(peer, n_updates))
            result.ours.append(rate(program, n_updates))
    return timed


def rate(program: Program, n_updates: int) -> Clocks:
    """Updates of all branches a second, and per CPU second."""
    took, n = program.run(n_updates), n_updates * program.n_branches
    return Clocks(n / took.wall, n / took.cpu)


def table(
    peer: Program, ours: Sequence[Program], timed: Sequence[Timed], device: str
) -> str:
    """A line for each program, columns as wide as they need; on a CPU two ratios."""
    ratios = {"wall": "ratio", "cpu": "ratio, CPU time"}
    if device != "cpu":
        del ratios["cpu"]
    titles = ["program", "type", "device", "branches", "parameters", "updates/s"]
    of_peer = [turn.wall for result in timed for turn in result.peer]
    rows = [
        [*titles, *ratios.values()],
        row(peer, device, spread(of_peer), ["1"] * len(ratios)),
    ]
    for program, result in zip(ours, timed, strict=True):
        rates = spread([turn.wall for turn in result.ours])
        texts = [result.ratio(clock).text() for clock in ratios]
        rows.append(row(program, device, rates, texts))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, r, widths)).rstrip() for r in rows)


def row(program: Program, device: str, rates: Spread, ratios: list[str]) -> list[str]:
    sizes = [str(program.n_branches), f"{program.n_parameters:,}"]
    return [program.name, program.compute, device, *sizes, rates.text(), *ratios]


def sizes_line(peer: int, ours: int) -> str:
    """Whether both programs have the same number of parameters."""
    difference = abs(ours - peer) / peer
    if difference > MAX_DIFFERENCE:
        return (
            f"NOT THE SAME SIZES: {ours:,} parameters are {difference:.1%} away from "
            f"the peer's {peer:,}; up to {MAX_DIFFERENCE:.0%} count as the same"
        )
    return f"same sizes: the numbers of parameters differ by {difference:.2%}"


class PeerProcess:
    """The peer in a process of its own, which answers in lines of JSON."""

    def __init__(
        self, given: argparse.Namespace, sizes: dict[str, Any], printed: IO[str]
    ) -> None:
        script = Path(__file__).with_name("torch_peer.py")
        self._printed = printed
        self._process = subprocess.Popen(
            [given.python, script, given.agent, given.peer, json.dumps(sizes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=printed,
            text=True,
        )
        self.about = self._answer()
        if "error" in self.about:
            sys.exit(f"peers: {self.about['error']}")

    def run(self, n_updates: int) -> Clocks:
        with contextlib.suppress(BrokenPipeError):  # no answer then, either
            print(n_updates, file=self._process.stdin, flush=True)
        return Clocks(*self._answer())

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            self._printed.seek(0)
            print(self._printed.read()[-2000:], file=sys.stderr)
            sys.exit("peers: the peer ended; the lines above are the last it printed")
        return json.loads(line)


def peer_of(
    given: argparse.Namespace, agent: Any, printed: IO[str]
) -> tuple[Program, dict[str, Any]]:
    """The peer, whose output goes to a file, and what it says of itself."""
    schedule = agent.schedule
    process = PeerProcess(
        given,
        {
            "device": "cpu" if given.device == "cpu" else "cuda",
            "eager": given.eager,
            "n_actuators": agent.n_actuators,
            "batch": [schedule.batch, schedule.length],
        },
        printed,
    )
    about = process.about
    name = f"{Path(given.peer).resolve().name} {commit(given.peer)}"
    counts = (1, about["parameters"])
    return Program(name, about["compute"], *counts, process.run), about


def commit(checkout: str) -> str:
    """The short name of the commit, if git knows it."""
    command = ["git", "-C", checkout, "rev-parse", "--short=7", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "of unknown commit"


def ours_of(agent: Any, n_branches: int) -> Program:
    """Branches of our agent on filled replay, after two updates."""
    from fleet import Learner  # the benchmark beside this one

    learner = Learner(agent, n_branches)
    shards = [learner.programs.tree(leaves) for leaves in learner.state]
    n_parameters = sum(map(n_trained, shards)) // n_branches
    learner.update(2)

    def run(n_updates: int) -> Clocks:
        cpu = time.process_time()
        wall = learner.update(n_updates)
        return Clocks(wall, time.process_time() - cpu)

    compute = agent.config.compute
    return Program("fallow paper", compute, n_branches, n_parameters, run)


def n_trained(state: Any) -> int:
    """Numbers that gradients change, of all branches of a learner."""
    import jax

    parts = [getattr(state, name) for name in TRAINED if hasattr(state, name)]
    return sum(leaf.size for leaf in jax.tree.leaves(parts))


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, checked as far as it can be before anything is started."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", default="dreamer", choices=list(PEERS))
    parser.add_argument("--peer", required=True, help="folder of the peer's checkout")
    parser.add_argument("--python", default=sys.executable, help="that runs the peer")
    parser.add_argument("--eager", action="store_true", help="peer: no torch.compile")
    parser.add_argument("--branches", nargs="+", type=int, default=[1, 40])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=10, help="in a turn")
    parser.add_argument("--device", default="gpu", choices=["cpu", "gpu"])
    parser.add_argument("--compute", choices=["float32", "bfloat16"], help="of ours")
    parsed = parser.parse_args(given)
    if min(*parsed.branches, parsed.rounds, parsed.updates) < 1:
        parser.error("--branches, --rounds and --updates must be 1 or more")
    if not shutil.which(parsed.python):
        parser.error(f"--python {parsed.python} is no program")
    address, file = PEERS[parsed.agent]
    if not (Path(parsed.peer) / file).is_file():
        parser.error(
            f"{parsed.peer} has no {file}; clone {address} and give its folder: "
            "--peer FOLDER"
        )
    return parsed


def agent_of(given: argparse.Namespace) -> Any:
    """Our agent on the device asked for."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # room for torch
    if given.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    from fallow.agents.fleet import build_agent

    if jax.default_backend() != given.device:
        sys.exit(
            f"peers: JAX {jax.__version__} runs on {jax.default_backend()}, not on "
            f"{given.device}; install jax for it or choose --device cpu"
        )
    compute = f":compute={given.compute}" if given.compute else ""
    return build_agent(TASK, given.agent, f"paper{compute}")


def measure(given: argparse.Namespace, printed: IO[str]) -> None:
    """Time the programs and print the table."""
    agent = agent_of(given)
    import jax

    peer, about = peer_of(given, agent, printed)
    ours = [ours_of(agent, n) for n in given.branches]
    timed = interleaved(peer, ours, given.rounds, given.updates)
    print(
        f"{given.agent}, {TASK}, {jax.devices()[0].device_kind}: median (slowest to "
        f"fastest) of turns of {given.updates} updates, {given.rounds} rounds"
    )
    print(table(peer, ours, timed, given.device))
    print(sizes_line(peer.n_parameters, ours[0].n_parameters))
    products = jax.config.jax_default_matmul_precision or "default"
    print(
        f"torch {about['torch']}, {about['graphs']} compiled graphs, float32 products "
        f"'{about['products']}'; jax {jax.__version__}, '{products}'"
    )


def main() -> None:
    given = arguments()
    with tempfile.TemporaryFile("w+") as printed:
        measure(given, printed)


if __name__ == "__main__":
    main()
