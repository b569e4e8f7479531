"""From rows of the replay to transitions.

A row holds an observation, the action that led to it and the reward on arriving there.
Transition t goes from the observation of row t to that of row t + 1, by the action and
with the reward that row t + 1 holds; those of the first row belong to the past.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Transitions(NamedTuple):
    """H transitions of B sequences, time first."""

    observation: jax.Array  # (H + 1, B, n_columns)
    action: jax.Array  # (H, B, A)
    reward: jax.Array  # (H, B)
    is_real: jax.Array  # (H, B), False where a row begins anew and nothing led to it


def transitions(rows: dict[str, jax.Array]) -> Transitions:
    """From rows (B, H + 1, …) as the replay samples them."""
    rows = {name: jnp.swapaxes(values, 0, 1) for name, values in rows.items()}
    return Transitions(
        rows["observation"],
        rows["action"][1:],
        rows["reward"][1:],
        ~rows["is_first"][1:],
    )
