"""Randomness by name: every stream derives from (seed, purpose, index)."""

import hashlib

import numpy as np


def derive(seed: int, purpose: str, index: int = 0) -> int:
    """A 32-bit seed for one purpose, the same on every machine.

    Streams of different purposes never share a generator, so evaluation cannot
    meet training, and nothing depends on the other runs of a fleet.
    """
    text = f"{int(seed)}/{purpose}/{int(index)}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little")


def generator(seed: int, purpose: str, index: int = 0) -> np.random.Generator:
    """A NumPy generator for one purpose."""
    return np.random.default_rng(derive(seed, purpose, index))


def of_worlds(seeds: list[int], n_worlds: int, purpose: str) -> np.ndarray:
    """World seeds for agents: (n_agents, n_worlds), from each agent's own seed."""
    return np.array(
        [[derive(seed, purpose, world) for world in range(n_worlds)] for seed in seeds],
        dtype=np.int64,
    )
