"""Checks of the arguments of worlds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.dynamics.conditions import Condition
from fallow.dynamics.tasks import EPISODE_FRAMES


def checked_seeds(seeds: Any) -> np.ndarray:
    """Seeds (agents, worlds); a single number is one world."""
    try:
        seeds = np.asarray(seeds)
    except ValueError:
        raise FallowError(
            f"seeds are {seeds}; every agent needs the same number of worlds"
        ) from None
    if seeds.ndim == 0:
        seeds = seeds[None, None]
    if seeds.ndim != 2 or seeds.size == 0 or not np.issubdtype(seeds.dtype, np.integer):
        raise FallowError(
            f"seeds have shape {seeds.shape} and type {seeds.dtype}; they must be "
            "whole numbers of shape (agents, worlds)"
        )
    if (seeds < 0).any() or (seeds >= 2**32).any():
        raise FallowError(f"a seed of {seeds.min()}; seeds are 0 to {2**32 - 1}")
    return seeds


def checked_repeat(action_repeat: int) -> int:
    """Frames for which an action is held: such that episodes are whole actions."""
    options.check_int("worlds", "action_repeat", action_repeat, at_least=1)
    if EPISODE_FRAMES % action_repeat:
        raise FallowError(
            f"worlds: action_repeat is {action_repeat}; it must divide the "
            f"{EPISODE_FRAMES} frames of an episode"
        )
    return action_repeat


def checked_actions(actions: Any, shape: tuple[int, int, int]) -> np.ndarray:
    """Actions (A, W, n_actuators) of all worlds, one row each."""
    try:
        actions = np.asarray(actions, dtype=np.float64)
    except (TypeError, ValueError):
        raise FallowError(
            f"actions are {options.shown(actions)}; give an array of numbers"
        ) from None
    if actions.shape != shape:
        raise FallowError(
            f"actions have shape {actions.shape} and must have {shape}: "
            "agents, worlds, actuators"
        )
    if not np.isfinite(actions).all():
        agent, world, actuator = np.argwhere(~np.isfinite(actions))[0]
        raise FallowError(
            f"the action of agent {agent}, world {world}, actuator {actuator} is "
            f"{actions[agent, world, actuator]}; it must be a number in [-1, 1]"
        )
    return actions.reshape(-1, shape[-1])


def one_each(
    conditions: str | Condition | Sequence[str | Condition], n_agents: int
) -> list[Condition]:
    """Conditions, one for each agent, from one for all or a list."""
    if isinstance(conditions, str) or not isinstance(conditions, Sequence):
        conditions = [conditions] * n_agents
    if len(conditions) != n_agents:
        raise FallowError(
            f"{len(conditions)} conditions for {n_agents} agents; give one, or one each"
        )
    return [Condition.parse(condition) for condition in conditions]


def seed_each(seeds: Sequence[int] | np.ndarray, n_agents: int) -> list[int]:
    """Seeds of schedules, one for each agent."""
    if len(seeds) != n_agents:
        raise FallowError(
            f"{len(seeds)} schedule seeds for {n_agents} agents; give one for each"
        )
    return [int(seed) for seed in seeds]


def check_saved(
    saved: Mapping[str, np.ndarray], present: Mapping[str, np.ndarray]
) -> None:
    """Raise unless a saved state has the arrays of the present one."""
    for name, array in present.items():
        if name not in saved or saved[name].shape != array.shape:
            found = saved[name].shape if name in saved else "nothing"
            raise FallowError(
                f"cannot restore these worlds: '{name}' is {found} and must be "
                f"{array.shape}; use the same task, agents and worlds"
            )
