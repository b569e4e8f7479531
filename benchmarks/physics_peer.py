"""dm_control as its users run it, for `physics.py`: in a process without Fallow.

Fallow stops MuJoCo's profiling clock in its own process, which would speed up whatever
else runs there. Reads `begin` or `play` from standard input, one a line; answers a line
each, after `play` the frames played, the CPU seconds and the seconds that they took.

    python benchmarks/physics_peer.py TASK N_TRANSITIONS ACTION_REPEAT
"""

import sys
import time

import numpy as np
from dm_control import suite


def main() -> None:
    task, n_transitions, action_repeat = sys.argv[1], *map(int, sys.argv[2:])
    domain, name = task.split("-", 1)
    env = suite.load(domain, name, task_kwargs={"random": 0})
    random = np.random.default_rng(0)
    n_actuators = env.action_spec().shape[0]

    def play() -> int:
        for action in random.uniform(-1, 1, (n_transitions, n_actuators)):
            reward = 0.0
            for _ in range(action_repeat):
                step = env.step(action)
                reward += step.reward
            np.concatenate([np.ravel(part) for part in step.observation.values()])
        return n_transitions * action_repeat

    for line in sys.stdin:
        if line.strip() == "begin":
            env.reset()
            print("begun", flush=True)
        else:
            cpu, wall = time.process_time(), time.perf_counter()
            frames = play()
            cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
            print(frames, cpu_s, wall_s, flush=True)


if __name__ == "__main__":
    main()
