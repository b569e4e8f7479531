"""What Dreamer's kernels compile to for an H200, counted; needs no GPU.

    pip install 'jax[cuda12]<0.11' nvidia-cuda-nvdisasm    # newer ones write no PTX
    python benchmarks/instructions.py --preset paper

For each kernel that `benchmarks/kernels.py` times: the registers of a thread, and the
instructions of its loop over rows, or of all of it where there is no loop, by kind.
"""

import argparse
import collections
import re
import shutil
import site
import subprocess
import tempfile
from pathlib import Path

import compiling  # first, since it sets what jax reads when it is imported
import jax
import kernels

from fallow.agents.compiling import GPU_OPTIONS
from fallow.agents.dreamer.config import PRESETS
from fallow.agents.dreamer.gpu import launch

N_KINDS = 8
"""Kinds of instructions shown."""
LEAST_LOOP = 30
"""Instructions of a loop over rows; shorter ones only count something."""
INSTRUCTION = r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+)?([A-Z0-9_]+)(.*)"


def tool(name: str) -> str:
    """Of CUDA, from the path or from one of its packages."""
    folders = [Path(folder) for folder in site.getsitepackages()]
    packaged = [p for folder in folders for p in folder.glob(f"nvidia/**/bin/{name}")]
    found = shutil.which(name) or (packaged and str(packaged[0]))
    if not found:
        raise SystemExit(f"there is no {name} here: see the head of this file")
    return found


def assembly(step, arrays) -> tuple[int, list[str]]:
    """Registers of a thread, and the lines of the largest kernel of a step."""
    shapes = compiling.placed(arrays)
    with tempfile.TemporaryDirectory() as folder:
        with compiling.on_h200():
            traced = jax.jit(jax.vmap(step)).trace(*shapes)
            lowered = traced.lower(lowering_platforms=("cuda",))
        lowered.compile(compiler_options=GPU_OPTIONS | {"xla_dump_to": folder})
        texts = sorted(Path(folder).glob("*.ptx"), key=lambda p: p.stat().st_size)
        if not texts:
            raise SystemExit(
                f"jax {jax.__version__} writes no PTX: take one below 0.11"
            )
        text = texts[-1]
        binary = Path(folder) / "kernel.cubin"
        command = [tool("ptxas"), "-arch=sm_90a", "-v", str(text), "-o", str(binary)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        command = [tool("nvdisasm"), "-c", str(binary)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(re.search(r"Used (\d+) registers", done.stderr)[1]), (
        shown.stdout.splitlines()
    )


def counted(lines: list[str]) -> collections.Counter:
    """Instructions by kind: of the last loop that is long enough, or of all."""
    names: list[str] = []
    labels: dict[str, int] = {}
    loop = slice(0, None)
    for line in lines:
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = len(names)
        if found := re.search(INSTRUCTION, line):
            names.append(found[1])
            back = re.search(r"\.L_x_\d+", found[2])
            begin = labels.get(back[0]) if back and found[1] == "BRA" else None
            if begin is not None and len(names) - begin > LEAST_LOOP:
                loop = slice(begin, len(names))
    return collections.Counter(names[loop])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="lean")
    config = PRESETS[parser.parse_args().preset]
    steps = kernels.steps_of(config, 1, config.n_starts * (config.horizon - 1))
    jax.default_backend = lambda: "gpu"  # what kernels ask when they choose their form
    assert launch.available()
    for name, (step, arrays) in steps.items():
        n_registers, lines = assembly(step, arrays)
        kinds = counted(lines)
        most = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common(N_KINDS))
        print(f"{name:18} {n_registers:4} registers {kinds.total():5}: {most}")


if __name__ == "__main__":
    main()
