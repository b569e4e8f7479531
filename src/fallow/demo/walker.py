"""The demo: the same gait on two walkers, one of which loses half its strength."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fallow.core import files, seeds
from fallow.dynamics import EPISODE_FRAMES, Worlds
from fallow.dynamics.gaits import STAND, START_NOISE_RAD, Gait
from fallow.logs import Recorder
from fallow.views.plotting import STYLE

TASK = "walker-walk"
SHIFT_FRAME = EPISODE_FRAMES // 2
CONDITIONS = ("none", f"gain:shift_frame={SHIFT_FRAME}")
LABELS = ("full strength throughout", "half strength from the dashed line on")
FALLEN_HEIGHT_M = 0.85
HEIGHT = 14  # observation column
STRIP_S = (-1.0, 2.0)  # drawn as figures, around the change
STRIP_EVERY_S = 0.25
FIGURE_WIDTH_M = 0.9
N_RIGHT_LIMBS = 3  # after the torso; then the left leg


@dataclass
class Walk:
    """What happened to both walkers, one row a transition."""

    step_s: float
    height_m: np.ndarray  # (T, 2)
    reward: np.ndarray  # (T, 2), in [0, 1] a frame
    distance_m: np.ndarray  # (T, 2)
    limbs: np.ndarray  # (T, 2, n_limbs, 2 ends, x and z)

    @property
    def shift_row(self) -> int:
        """First transition after the change."""
        return len(self.reward) // 2

    @property
    def time_s(self) -> np.ndarray:
        """Time at the end of every transition, from the change."""
        return (np.arange(len(self.reward)) + 1 - self.shift_row) * self.step_s

    def fall_s(self) -> float | None:
        """Seconds from the change to the fall of the weakened walker."""
        fallen = (self.height_m[:, 1] < FALLEN_HEIGHT_M) & (self.time_s > 0)
        return float(self.time_s[fallen.argmax()]) if fallen.any() else None


def run_demo(folder: Path, seed: int = 0) -> Iterator[str]:
    """Walk, draw, and say in two lines what happened."""
    folder.mkdir(parents=True, exist_ok=True)
    walk = simulate(folder / "walker.fallow", seed)
    picture = folder / "walker.png"
    draw(walk, picture)
    before, after = walk.reward[: walk.shift_row], walk.reward[walk.shift_row :]
    fall_s = walk.fall_s()
    fate = "stays up" if fall_s is None else f"falls {fall_s:.2f} s later"
    yield (
        f"A scripted gait walks {walk.distance_m[-1, 0]:.0f} m in "
        f"{len(walk.reward) * walk.step_s:.0f} s; at half the actuator gain the same "
        f"gait {fate}."
    )
    yield (
        f"Reward a frame, before and after: {before[:, 0].mean():.2f} and "
        f"{after[:, 0].mean():.2f} unchanged, {before[:, 1].mean():.2f} and "
        f"{after[:, 1].mean():.2f} with the change. Picture: {picture}"
    )


def simulate(history: Path, seed: int) -> Walk:
    """Both walkers from the same start; the weakened one's history is recorded."""
    worlds = Worlds(TASK, CONDITIONS, [[seed], [seed]], n_threads=1)
    noise = seeds.generator(seed, "demo-start").uniform(-1, 1, 6) * START_NOISE_RAD
    pose = STAND + np.concatenate([np.zeros(3), noise])
    for agent in range(2):
        worlds.place(agent, 0, pose)
    history.unlink(missing_ok=True)
    n_steps = EPISODE_FRAMES // worlds.action_repeat
    gait, rows = Gait(), []
    with Recorder(worlds, history, agent=1) as recorder:
        for index in range(n_steps):
            figures = [_limbs(*worlds.snapshot(agent)) for agent in range(2)]
            actions = gait(worlds.observation, index * worlds.control_step_s)
            step = worlds.step(actions)
            recorder.add(actions, step)
            frame_reward = step.reward[:, 0] / worlds.action_repeat
            rows.append((step.observation[:, 0, HEIGHT], frame_reward, figures))
    height_m, reward, limbs = (np.array(column) for column in zip(*rows, strict=True))
    return Walk(
        step_s=worlds.control_step_s,
        height_m=height_m,
        reward=reward,
        distance_m=limbs[:, :, 0, :, 0].mean(axis=-1),
        limbs=limbs,
    )


def _limbs(model: Any, data: Any) -> np.ndarray:
    """Both ends of every capsule, x and z: (n_limbs, 2, 2), the torso first."""
    capsules = np.flatnonzero(model.geom_type == 3)  # mjGEOM_CAPSULE
    centre = data.geom_xpos[capsules]
    axis = data.geom_xmat[capsules].reshape(-1, 3, 3)[:, :, 2]
    half = axis * model.geom_size[capsules, 1:2]
    return np.stack([centre - half, centre + half], axis=1)[:, :, [0, 2]]


def draw(walk: Walk, path: Path) -> None:
    """Figures around the change, then height and reward over the whole walk."""
    with style.context(STYLE):
        figure = Figure(figsize=(10, 7.5))
        strips = figure.add_gridspec(4, 1, height_ratios=[1.15, 1.15, 1, 1])
        for agent, label in enumerate(LABELS):
            _draw_strip(figure.add_subplot(strips[agent]), walk, agent, label)
        height = figure.add_subplot(strips[2])
        _draw_traces(height, walk, walk.height_m, "torso height [m]")
        height.tick_params(labelbottom=False)
        reward = figure.add_subplot(strips[3])
        _draw_traces(reward, walk, walk.reward, "reward a frame")
        reward.set_xlabel("time from the change [s]")
        height.legend(LABELS, loc="lower left")
        figure.suptitle(
            "The same gait, with and without half of the actuator gain",
            x=0.01,
            ha="left",
            weight="bold",
        )
        with files.write_atomic(path) as part:
            figure.savefig(part, format="png")


def _draw_strip(axes: Axes, walk: Walk, agent: int, label: str) -> None:
    """The walker every quarter of a second, side by side."""
    every = round(STRIP_EVERY_S / walk.step_s)
    first, last = (walk.shift_row + round(at_s / walk.step_s) for at_s in STRIP_S)
    for row in range(first, last + 1, every):
        place_m = (row - walk.shift_row) / every * FIGURE_WIDTH_M
        changed = agent == 1 and row >= walk.shift_row
        for index, limb in enumerate(walk.limbs[row, agent]):
            is_left = index > N_RIGHT_LIMBS
            axes.plot(
                limb[:, 0] - walk.distance_m[row, agent] + place_m,
                limb[:, 1],
                color=f"C{int(changed)}",
                alpha=0.45 if is_left else 0.95,
                linewidth=6 if index == 0 else 4,
                solid_capstyle="round",
            )
    axes.axvline(0, color="0.3", linestyle="--", linewidth=1)
    axes.axhline(-0.04, color="0.4", linewidth=1.5)
    axes.set(aspect="equal", yticks=[], xticks=[], xlim=(-4, 8.2), ylim=(-0.1, 1.7))
    axes.set_title(f"{label}, every {STRIP_EVERY_S} s")
    axes.grid(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _draw_traces(axes: Axes, walk: Walk, values: np.ndarray, label: str) -> None:
    for agent in range(2):
        axes.plot(walk.time_s, values[:, agent], color=f"C{agent}")
    axes.axvline(0, color="0.3", linestyle="--", linewidth=1)
    axes.set(ylabel=label, xlim=(walk.time_s[0], walk.time_s[-1]))
    axes.set_ylim(bottom=0)
