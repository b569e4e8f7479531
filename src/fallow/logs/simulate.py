"""Records a history of a simulated body under a condition, with a scripted policy."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fallow.core import files, options, seeds
from fallow.core.errors import FallowError
from fallow.dynamics import EPISODE_FRAMES, Condition, Worlds
from fallow.dynamics.scripted import Scripted
from fallow.logs.recorder import Recorder


def simulate(
    task: str,
    condition: str,
    n_episodes: int,
    seed: int,
    path: Path,
    tick: Callable[[], None] = lambda: None,
) -> Condition:
    """Write `n_episodes` of one world to a new history; `tick` hears of each.

    Everything follows from the arguments. An existing file is not overwritten.
    """
    options.check_int("simulate", "episodes", n_episodes, at_least=1)
    options.check_int("simulate", "seed", seed, at_least=0)
    if path.exists():
        raise FallowError(f"{path} exists already; remove it or choose another file")
    world_seed = seeds.derive(seed, "simulated worlds")
    worlds = Worlds(task, condition, world_seed, n_threads=1)
    policy = Scripted(worlds.n_actuators, worlds.control_step_s, seed)
    n_steps = EPISODE_FRAMES // worlds.action_repeat
    with files.write_atomic(path) as part, Recorder(worlds, part) as recorder:
        for episode in range(n_episodes):
            for action in policy.actions(episode, n_steps).astype(np.float32):
                step = worlds.step(action[None, None])
                recorder.add(action[None, None], step)
            tick()
    return worlds.conditions[0]
