"""The options of commands that read logs: which columns hold what."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fallow.logs.columns import Columns


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """Which columns of a log hold what, and how much memory it may take."""

    velocity: str | None = None
    """Velocity columns: names, places (11:17) or both (qvel[3:9]); else guessed."""
    action: str | None = None
    """Action columns, likewise, in the order of the velocities they drive."""
    position: str | None = None
    """Position columns, whose differences are the velocities, where none are logged."""
    episode: str | None = None
    """The column that numbers the episodes."""
    time: str | None = None
    """The column of times in seconds."""
    episode_steps: int | None = None
    """Cut a recording without episodes into pieces of so many rows."""
    lag_ms: float | None = None
    """How long commands act after they are logged (MCAP, ROS); else estimated."""
    max_memory: str | None = None
    """Refuse logs that need more, e.g. 4GiB; else a quarter of the memory."""

    def columns(self) -> "Columns":
        """The choice, as readers take it."""
        from fallow.core.sizes import parse_size
        from fallow.logs.columns import Columns

        limit = parse_size(self.max_memory, "--max-memory") if self.max_memory else None
        return Columns(
            velocity=self.velocity,
            action=self.action,
            episode=self.episode,
            time=self.time,
            episode_steps=self.episode_steps,
            position=self.position,
            lag_ms=self.lag_ms,
            max_memory_bytes=limit,
        )
