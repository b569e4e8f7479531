"""How long an update compiles for an H200, and into how many kernels; needs no GPU.

    pip install 'jax[cuda12]'        # the compiler; a driver and a card are not needed
    python benchmarks/compiling.py --preset lean --branches 5
    FALLOW_KERNELS=off python benchmarks/compiling.py --preset lean --branches 5
    python benchmarks/compiling.py --agent tdmpc --preset lean --branches 5

Prints the seconds of tracing, lowering and compiling, the compiler's slowest passes,
and what the compiled program starts: kernels in each loop by kind, and in all. On a
machine with the card, choosing among variants of products (autotuning) comes on top;
here the compiler takes its defaults, which changes products' names but not their
number.
"""

import argparse
import collections
import contextlib
import os
import re
import tempfile
import time
from pathlib import Path

# before jax is imported: the log alone reports what passes take
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
os.environ["TF_CPP_VMODULE"] = "hlo_pass_pipeline=1,gpu_compiler=1"

import fleet as benchmark
import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import (
    AbstractDevice,
    AbstractMesh,
    SingleDeviceSharding,
    use_abstract_mesh,
)

from fallow.agents import programs
from fallow.agents.compiling import GPU_OPTIONS
from fallow.agents.fleet import build_agent
from fallow.agents.programs import Programs

H200 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 150000000000
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  cuda_compute_capability { major: 9 minor: 0 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
runtime_version { major: 12 minor: 9 }
device_description_str: "NVIDIA H200"
"""
"""What the compiler has to know of the card."""
N_PASSES = 4
"""Slowest passes shown."""
LEAST_PASS_S = 0.05
UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
FREE = {
    "parameter", "get-tuple-element", "tuple", "bitcast", "constant", "after-all",
}  # fmt: skip
"""Instructions that start nothing."""
KINDS = {
    "gemm": "product", "dot": "product", "update": "copy in", "slice": "copy out",
    "copy": "copy", "transpose": "copy",
}  # fmt: skip
"""Of fused kernels, by a word in their names; all others are elementwise."""


def placed(arrays):
    """Shapes of arrays on an H200, which need not be there."""
    topology = topologies.get_topology_desc(
        "h200", "cuda", target_config=H200, topology="1x1x1"
    )
    place = SingleDeviceSharding(topology.devices[0])
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), arrays
    )


def update_for(agent, n_branches: int) -> tuple:
    """The update of a fleet, and arguments that say shapes only."""
    buffer = benchmark.filled(agent, n_branches)
    programs = Programs(agent, buffer.layout, list(range(n_branches)))
    schedule = agent.schedule
    indices = buffer.sample(
        1, schedule.batch, schedule.length, schedule.within_episodes
    )
    arguments = (
        jax.eval_shape(programs._init.jitted, programs._keys["init"][0]),
        np.swapaxes(indices.rows, 0, 1),
        np.swapaxes(indices.is_first, 0, 1),
        programs._places[0],
        programs._keys["learning"][0],
        np.zeros(n_branches, np.uint32),
        buffer.groups,
    )
    return programs._update.jitted, placed(arguments)


def on_h200() -> contextlib.AbstractContextManager:
    """Where kernels are lowered for the card: since 0.11 jax asks which one it is."""
    card = AbstractDevice("NVIDIA H200", 132, "gpu")
    return use_abstract_mesh(AbstractMesh((1,), ("cards",), abstract_device=card))


def compiled(name: str, preset: str, n_branches: int) -> tuple:
    """The text of the compiled update, and the seconds of each stage."""
    jax.config.update("jax_traceback_in_locations_limit", 0)
    agent = build_agent(benchmark.TASK, name, preset)
    programs.on_processor = lambda: False
    update, shapes = update_for(agent, n_branches)
    jax.default_backend = lambda: "gpu"  # what agents ask when they choose their form
    times = [time.perf_counter()]
    with on_h200():
        traced = update.trace(*shapes)
        times.append(time.perf_counter())
        lowered = traced.lower(lowering_platforms=("cuda",))
        times.append(time.perf_counter())
    text = lowered.compile(compiler_options=GPU_OPTIONS).as_text()
    times.append(time.perf_counter())
    stages = ("tracing", "lowering", "compiling")
    return text, dict(zip(stages, np.diff(times).tolist(), strict=True))


class Log:
    """What the compiler writes to standard error while the block runs."""

    def __enter__(self) -> "Log":
        self._file = tempfile.TemporaryFile("w+")
        self._kept = os.dup(2)
        os.dup2(self._file.fileno(), 2)
        return self

    def __exit__(self, *_: object) -> None:
        os.dup2(self._kept, 2)
        self._file.seek(0)
        self.text = self._file.read()

    def slowest_passes(self) -> str:
        """Seconds of those that took longest."""
        seconds: collections.Counter[str] = collections.Counter()
        timed = re.findall(r"HLO pass: (\S+) time: ([\d.]+) (\w+) \(", self.text)
        for name, number, unit in timed:
            spent = float(number) * UNIT_S[unit]
            seconds[name] += spent if spent > LEAST_PASS_S else 0
        most = seconds.most_common(N_PASSES)
        return ", ".join(f"{name} {spent:.1f}" for name, spent in most)


class Compiled:
    """A compiled program's text, to be counted in."""

    def __init__(self, text: str) -> None:
        pattern = r"^(?:ENTRY )?%?([\w.\-]+) \(.*?\) -> .*? \{\n(.*?)^\}"
        self._parts = dict(re.findall(pattern, text, re.M | re.S))
        self._entry = re.search(r"^ENTRY %?([\w.\-]+)", text, re.M)[1]

    def kernels(self, part: str | None = None) -> collections.Counter:
        """By kind; prints a line for each loop that it meets."""
        found: collections.Counter[str] = collections.Counter()
        for line in self._parts[part or self._entry].splitlines():
            plain = re.sub(r"/\*.*?\*/", "", line)
            match = re.match(
                r"\s*(?:ROOT )?%?([\w.\-]+) = (?:\(.*?\)|\S+) ([\w\-]+)\(", plain
            )
            if match is None or match[2] in FREE:
                continue
            if match[2] == "while":
                found += self._loop(line)
            else:
                found[_kind(match[1], match[2], line)] += 1
        return found

    def _loop(self, line: str) -> collections.Counter:
        inner = self.kernels(re.search(r"body=%?([\w.\-]+)", line)[1])
        n_steps = int(re.search(r'"known_trip_count":\{"n":"(\d+)"', line)[1])
        print(f"  a loop of {n_steps} steps, each {_words(inner)}")
        return collections.Counter({k: n_steps * n for k, n in inner.items()})


def _kind(name: str, operation: str, line: str) -> str:
    if operation == "custom-call":
        return "kernel of ours" if "triton" in line else "other call"
    if operation != "fusion":
        return "copy" if operation == "copy" else "other call"
    return next((kind for word, kind in KINDS.items() if word in name), "elementwise")


def _words(counts: collections.Counter) -> str:
    each = ", ".join(f"{n:,} {kind}" for kind, n in counts.most_common())
    return f"{sum(counts.values()):,}: {each}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", default="dreamer")
    parser.add_argument("--preset", default="lean", help="e.g. lean:unroll=8")
    parser.add_argument("--branches", type=int, default=5)
    parser.add_argument("--text", type=Path, help="write the compiled program here")
    given = parser.parse_args()
    with Log() as log:
        text, seconds = compiled(given.agent, given.preset, given.branches)
    kernels = os.environ.get("FALLOW_KERNELS", "default")
    print(f"{given.agent} {given.preset}, {given.branches} branches, {kernels} kernels")
    spent = ", ".join(f"{what} {took_s:.1f}" for what, took_s in seconds.items())
    print(f"  s: {spent}; slowest passes: {log.slowest_passes()}")
    print(f"  an update {_words(Compiled(text).kernels())}")
    if given.text:
        given.text.write_text(text)


if __name__ == "__main__":
    main()
