"""Dreamers small enough for tests, a learner that is not new, and a batch."""

import dataclasses
from functools import partial

import jax
import numpy as np

from fallow.agents.dreamer import losses, train
from fallow.agents.dreamer.config import PRESETS, Config

SMALL = dataclasses.replace(
    PRESETS["tiny"],
    batch=4,
    length=6,
    n_starts=24,
    n_deter=16,
    n_hidden=16,
    model_rate=3e-3,
)
N_COLUMNS, N_ACTUATORS = 5, 2
MICRO = dataclasses.replace(
    PRESETS["tiny"],
    n_worlds=2,
    n_deter=8,
    n_hidden=8,
    n_categoricals=2,
    n_classes=4,
    coder_layers=1,
    coder_width=8,
    head_width=8,
    batch=2,
    length=8,
    n_starts=4,
    horizon=4,
    train_ratio=16,
    prefill_transitions=140,
    pretrain_updates=3,
)
"""For fleets: every program compiles in a moment."""


def moved(learner: train.Learner) -> train.Learner:
    """With networks whose norms, biases and start are not at their initial values."""

    def moved(leaf: jax.Array) -> jax.Array:
        noise = jax.random.normal(jax.random.key(leaf.size), leaf.shape)
        return leaf + (0.1 if leaf.ndim == 1 else 0.3 / len(leaf) ** 0.5) * noise

    networks = ("model", "actor", "critic", "slow_critic")
    return learner._replace(
        **{name: jax.tree.map(moved, getattr(learner, name)) for name in networks}
    )


def random_batch(
    config: Config = SMALL,
    n_columns: int = N_COLUMNS,
    n_actuators: int = N_ACTUATORS,
    seed: int = 0,
) -> losses.Batch:
    """Sequences in which episodes begin here and there."""
    random = np.random.default_rng(seed)
    shape = (config.length, config.batch)
    is_first = random.random(shape) < 0.2
    is_first[0] = True
    return {
        "observation": random.normal(size=(*shape, n_columns)).astype(np.float32),
        "action": random.uniform(-1, 1, (*shape, n_actuators)).astype(np.float32),
        "reward": random.random(shape).astype(np.float32),
        "is_first": is_first,
    }


@partial(jax.jit, static_argnums=0)
def fresh(seed: int) -> train.Learner:
    return train.init(SMALL, jax.random.key(seed), N_COLUMNS, N_ACTUATORS)


updated = jax.jit(partial(train.update, SMALL))


def by_sequence(batch: losses.Batch) -> losses.Batch:
    """As replay hands it over: (B, T, …)."""
    return {name: np.swapaxes(values, 0, 1) for name, values in batch.items()}


def uniform_of(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).random(shape).astype(np.float32)
