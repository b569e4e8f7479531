"""What the demo's study did and found, in sentences."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fallow.core import seeds
from fallow.core.results import read_results
from fallow.dynamics import EPISODE_FRAMES, Worlds
from fallow.study.plan import Plan

TIMES_RANDOM = 3
"""A trunk that reaches less than so many times a random policy has learned little."""
N_EPISODES = 10
"""Of the random policy."""
FAST_RECURRENCE = (
    "The recurring change comes and goes with every episode, and a tracker needs two "
    "for a decision. There adaptive keeps all data because it reports no change; it "
    "does not recognise the returns. The walkers above recur every 20 episodes."
)


def plan_sentence(plan: Plan) -> str:
    """What is run."""
    change = f"at branch frame {plan.shift_frame:,}" if plan.shift_frame else "at once"
    return (
        f"{len(plan.trunks())} trunks of {plan.trunk_frames:,} frames on "
        f"{plan.tasks[0]}, and {len(plan.branches())} branches of "
        f"{plan.branch_frames:,} from them; the body changes {change}. "
        f"Agent {plan.agents[0]}, preset {plan.preset}."
    )


def trunk_sentences(plan: Plan, folder: Path) -> Iterator[str]:
    """What the trunks reached beside a random policy, and whether that is little."""
    chance = random_return(plan.tasks[0])
    last = {row.seed: row for row in read_results(folder / "trunks.csv")}
    reached = [last[seed].mean_return for seed in sorted(last)]
    each = ", ".join(f"{value:.0f}" for value in reached)
    yield f"The trunks reached a return of {each}; a random policy gets {chance:.0f}."
    weak = [seed for seed in sorted(last) if _is_weak(last[seed].mean_return, chance)]
    if weak:
        which = ", ".join(str(seed) for seed in weak)
        yield (
            f"Below {TIMES_RANDOM} times that (seed {which}) an agent has learned too "
            "little for its differences to mean much: read what follows as an example "
            "of the method, not as a finding."
        )


def _is_weak(reached: float, chance: float) -> bool:
    return reached < TIMES_RANDOM * chance


def random_return(task: str, n_episodes: int = N_EPISODES) -> float:
    """Mean return of uniformly random actions."""
    worlds = Worlds(
        task, seeds=seeds.of_worlds([0], n_episodes, "random policy"), n_threads=1
    )
    random = seeds.generator(0, "random policy")
    shape = (1, n_episodes, worlds.n_actuators)
    returns = np.zeros((1, n_episodes))
    for _ in range(EPISODE_FRAMES // worlds.action_repeat):
        returns += worlds.step(random.uniform(-1, 1, shape)).reward
    return float(returns.mean())
