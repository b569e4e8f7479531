"""Bodies: tasks, changes and their schedules, and parallel worlds."""

from fallow.dynamics.conditions import CONDITIONS, Condition
from fallow.dynamics.schedules import SCHEDULES
from fallow.dynamics.step import PhysicsError, Step
from fallow.dynamics.tasks import EPISODE_FRAMES, TASKS, Task
from fallow.dynamics.worlds import Worlds

__all__ = [
    "CONDITIONS",
    "EPISODE_FRAMES",
    "SCHEDULES",
    "TASKS",
    "Condition",
    "PhysicsError",
    "Step",
    "Task",
    "Worlds",
]
