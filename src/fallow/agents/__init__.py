"""Agents, each written for one branch, and the fleet that trains them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fallow.agents.dreamer.config import PRESETS as DREAMER_PRESETS
from fallow.agents.tdmpc.config import PRESETS as TDMPC_PRESETS
from fallow.core import options
from fallow.core.registry import Registry

if TYPE_CHECKING:
    from fallow.agents.base import Agent


class AgentKind(NamedTuple):
    """An agent known by name; jax is imported only when one is built."""

    summary: str
    presets: Registry[Any]
    build: Callable[[str, Any, int, int], "Agent"]
    """From preset name, sizes, observation columns and actuators."""

    def sizes(self, preset: str) -> Any:
        """The numbers of a preset, or of one with some changed: `lean:horizon=10`."""
        name, changes = options.parse(preset)
        return options.replaced(self.presets[name], changes, f"preset '{name}'")


AGENTS: Registry[AgentKind] = Registry("agent")


def _dreamer(preset: str, config: Any, n_columns: int, n_actuators: int) -> "Agent":
    from fallow.agents.dreamer.agent import Dreamer

    return Dreamer(preset, config, n_columns, n_actuators)


def _tdmpc(preset: str, config: Any, n_columns: int, n_actuators: int) -> "Agent":
    from fallow.agents.tdmpc.agent import TdMpc

    return TdMpc(preset, config, n_columns, n_actuators)


AGENTS.add("dreamer", AgentKind("DreamerV3 of January 2023", DREAMER_PRESETS, _dreamer))
AGENTS.add("tdmpc", AgentKind("TD-MPC2 on state observations", TDMPC_PRESETS, _tdmpc))
