"""How many branches fit on the device, computed before anything is compiled."""

import math
from collections.abc import Sequence

import jax

from fallow.agents.base import Agent
from fallow.core.errors import FallowError
from fallow.core.records import Branch
from fallow.replay.ledger import CHUNK

USABLE = 0.9
"""Share of the device's memory that a fleet may plan with."""
HOST_BYTES = 8 * 2**30
"""Assumed memory where the device does not report it, as on a CPU."""


def branch_bytes(agent: Agent, capacity_transitions: int) -> int:
    """Device memory of one branch: learner (old, new, evaluated), replay, an update."""
    state = jax.eval_shape(agent.init, jax.random.key(0))
    learner = sum(
        math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)
    )
    row = 4 * (agent.n_columns + agent.n_actuators + 1) + 1
    rows = capacity_transitions + CHUNK * agent.schedule.n_worlds
    return 3 * learner + row * rows + agent.working_bytes()


def device_bytes() -> int:
    """Memory that the device gives to programs."""
    stats = jax.devices()[0].memory_stats() or {}
    return int(stats.get("bytes_limit", HOST_BYTES))


def fleets_that_fit(
    agent: Agent, branches: Sequence[Branch], capacity_transitions: int
) -> list[tuple[Branch, ...]]:
    """The branches in as few fleets, as equal in size, as memory allows.

    Raises:
        FallowError: not even one branch fits.
    """
    each = branch_bytes(agent, capacity_transitions)
    limit = int(USABLE * device_bytes())
    most = limit // each
    if most == 0:
        raise FallowError(
            f"one branch needs about {each / 2**30:.1f} GiB and the device gives "
            f"{limit / 2**30:.1f}; choose a smaller preset or capacity_transitions"
        )
    n_fleets = math.ceil(len(branches) / most)
    size = math.ceil(len(branches) / n_fleets)
    starts = range(0, len(branches), size)
    return [tuple(branches[start : start + size]) for start in starts]
