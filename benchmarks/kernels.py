"""Dreamer's kernels beside what the compiler makes of the plain forms, on a GPU.

    python benchmarks/kernels.py --preset lean --branches 80
    python benchmarks/kernels.py --per-warp 256 512 1024

One line for each step and number of rows: microseconds of the plain form, of the
kernel for each number of numbers that a warp holds, and what its bytes take at the
bandwidth that a large copy reaches in the same run. Medians over rounds, plain and
kernels taking turns.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp

from fallow.agents.dreamer.bins import BINS
from fallow.agents.dreamer.config import PRESETS
from fallow.agents.dreamer.gpu import launch
from fallow.agents.dreamer.gpu.bins import N_PADDED
from fallow.agents.dreamer.heads import BinnedScalars
from fallow.agents.dreamer.ops import (
    Logits,
    bins_layer,
    norm_gates,
    norm_gates_back,
    norm_silu,
    norm_silu_back,
    sample_latent,
    sample_latent_back,
    stack_steps,
)
from fallow.agents.shared.layers import Norm

N_CALLS, N_ROUNDS = 20, 5


def normal(index: int, *shape: int, dtype=jnp.float32) -> jax.Array:
    return jax.random.normal(jax.random.key(index), shape, dtype)


def steps_of(config, n_branches: int, n_rows: int) -> dict:
    """Each step as a function of arrays with a leading axis of branches."""
    dtype, width, deter = config.compute, config.n_hidden, config.n_deter
    shape = (config.n_categoricals, config.n_classes)
    x, d_x = (normal(i, n_branches, n_rows, width, dtype=dtype) for i in (0, 1))
    p2 = normal(2, n_branches, n_rows, 3 * deter, dtype=dtype)
    h, d_h = (normal(i, n_branches, n_rows, deter) for i in (3, 4))
    p4, d_4 = (
        normal(i, n_branches, n_rows, config.n_stoch, dtype=dtype) for i in (5, 6)
    )
    uniform = jax.random.uniform(jax.random.key(7), (n_branches, n_rows, shape[0]))
    norm, norm3 = Norm(width, 1e-3), Norm(3 * deter, 1e-3)
    bias = jnp.zeros(config.n_stoch)

    p_bins = normal(8, n_branches, n_rows, N_PADDED, dtype=dtype)
    aim = normal(9, n_branches, n_rows)
    each_step = tuple(x + t for t in range(config.horizon - 1))

    def logits(p: jax.Array) -> Logits:
        return Logits(p, bias, shape)

    def scalars(p: jax.Array) -> BinnedScalars:
        _, bias = bins_layer(jnp.zeros((1, BINS.n)), jnp.zeros(BINS.n))
        return BinnedScalars(p[..., : len(bias)], bias)

    return {
        "norm, SiLU": (lambda x: norm_silu(norm, x), (x,)),
        "norm, SiLU back": (lambda x, d: norm_silu_back(norm, x, d), (x, d_x)),
        "norm, gates": (lambda p, h: norm_gates(norm3, p, h), (p2, h)),
        "norm, gates back": (
            lambda p, h, d: norm_gates_back(norm3, p, h, d),
            (p2, h, d_h),
        ),
        "sample": (lambda p, u: sample_latent(logits(p), u), (p4, uniform)),
        "sample back": (
            lambda p, u, d: sample_latent_back(logits(p), u, d),
            (p4, uniform, d_4),
        ),
        "estimate": (lambda p: scalars(p).estimate(), (p_bins,)),
        "estimate back": (jax.grad(lambda p: scalars(p).estimate().sum()), (p_bins,)),
        "loss": (lambda p, a: scalars(p).cross_entropy(a), (p_bins, aim)),
        "loss back": (
            jax.grad(lambda p, a: scalars(p).cross_entropy(a).sum()),
            (p_bins, aim),
        ),
        "steps together": (stack_steps, each_step),
    }


def compiled(step, arrays):
    """The step, mapped over branches, as one program."""
    jax.clear_caches()  # a kernel is traced once for each shape, not for each choice
    program = jax.jit(jax.vmap(step)).lower(*arrays).compile()
    jax.block_until_ready(program(*arrays))
    return program


def seconds(program, arrays) -> float:
    begin = time.perf_counter()
    for _ in range(N_CALLS):
        out = program(*arrays)
    jax.block_until_ready(out)
    return (time.perf_counter() - begin) / N_CALLS


def bandwidth() -> float:
    """Bytes a second that a large copy reads and writes."""
    x = jnp.zeros(2**28, jnp.float32)
    copy = compiled(lambda x: x + 1, (x[None],))
    return 2 * x.nbytes / min(seconds(copy, (x[None],)) for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="lean")
    parser.add_argument("--branches", type=int, default=80)
    parser.add_argument("--per-warp", nargs="+", type=int, default=[launch.PER_WARP])
    given = parser.parse_args()
    config = PRESETS[given.preset]
    if not launch.available():
        raise SystemExit("there is no GPU here that the kernels can be compiled for")
    peak = bandwidth()
    print(f"{jax.devices()[0].device_kind}, {peak / 1e12:.2f} TB/s, microseconds")
    shown = " ".join(f"{per_warp:8}" for per_warp in given.per_warp)
    print(f"{'step':18} {'rows':>6} {'bytes':>7} {'plain':>7} {shown}")
    imagined = config.n_starts * (config.horizon - 1)
    for n_rows in (config.batch, config.n_starts, imagined):
        for name, (step, arrays) in steps_of(config, given.branches, n_rows).items():
            launch.available = lambda: False
            programs = {"plain": compiled(step, arrays)}
            launch.available = lambda: True
            for per_warp in given.per_warp:
                launch.PER_WARP = per_warp
                programs[per_warp] = compiled(step, arrays)
            times = {key: [] for key in programs}
            for _ in range(N_ROUNDS):
                for key, program in programs.items():
                    times[key].append(seconds(program, arrays))
            us = {key: 1e6 * statistics.median(spent) for key, spent in times.items()}
            out = jax.eval_shape(jax.vmap(step), *arrays)
            n_bytes = sum(
                a.size * a.dtype.itemsize for a in (*arrays, *jax.tree.leaves(out))
            )
            cells = " ".join(f"{us[per_warp]:8.0f}" for per_warp in given.per_warp)
            bound = 1e6 * n_bytes / peak
            print(
                f"{name:18} {n_rows:6} {bound:7.0f} {us['plain']:7.0f} {cells}",
                flush=True,
            )


if __name__ == "__main__":
    main()
