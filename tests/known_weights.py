"""Weights that anybody can compute: a formula of a parameter's number and the entry."""

import re
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

DATA = Path(__file__).parent / "data"
NAMED = re.compile(r"(\S+) \((.*)\)")

Scaled = Callable[[str, np.ndarray], np.ndarray]
"""From a name and numbers in [-1, 1] of its shape to the weight."""


def known_weights(names: str, scaled: Scaled) -> dict[str, np.ndarray]:
    """All parameters named in a file, one `name (shape)` a line."""
    weights = {}
    for index, line in enumerate((DATA / names).read_text().splitlines()):
        name, sizes = NAMED.fullmatch(line).groups()
        shape = tuple(int(size) for size in sizes.split(",") if size.strip())
        k = np.arange(int(np.prod(shape)), dtype=np.int64)
        m = (31 * k**2 + 17 * (index + 1) * k + 7919 * index) % 10007
        s = (2 * m / 10006 - 1).reshape(shape)
        weights[name] = scaled(name, s).astype(np.float32)
    return weights


def n_parameters(network: eqx.Module) -> int:
    """How many numbers are learned."""
    return sum(leaf.size for leaf in jax.tree.leaves(network))
