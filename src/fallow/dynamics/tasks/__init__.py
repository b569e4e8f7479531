"""The tasks: DM Control bodies written in plain MuJoCo, one file a body."""

from fallow.core.registry import Registry
from fallow.dynamics.tasks import cartpole, cheetah, hopper, pendulum, walker
from fallow.dynamics.tasks.body import ACTION_REPEAT, EPISODE_FRAMES, Body, Task, View

TASKS: Registry[Task] = Registry("task")
for _body in (walker, cheetah, cartpole, pendulum, hopper):
    for _task in _body.TASKS:
        TASKS.add(_task.name, _task)

__all__ = ["ACTION_REPEAT", "EPISODE_FRAMES", "TASKS", "Body", "Task", "View"]
