"""Film two walkers with the same gait, one of which loses half its strength.

python tools/walker_gif.py docs/walker.gif
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from fallow.demo.walker import N_RIGHT_LIMBS, Walk, simulate
from fallow.views.plotting import STYLE

FROM_S, TO_S, EVERY_S = -1.5, 2.5, 0.05
"""Around the change."""
HALF_WIDTH_M, WIDTH_PX, HEIGHT_PX = 1.6, 640, 270
N_COLOURS = 24
LABELS = ("full strength", "half strength from 0.0 s")


def frame(walk: Walk, row: int) -> Image.Image:
    """Both walkers after one transition, each in the middle of its view."""
    with style.context(STYLE):
        size = (WIDTH_PX / 100, HEIGHT_PX / 100)
        figure = Figure(figsize=size, dpi=100, layout="none")
        canvas = FigureCanvasAgg(figure)
        for agent, axes in enumerate(figure.subplots(1, 2)):
            middle_m = walk.distance_m[row, agent]
            changed = agent == 1 and walk.time_s[row] > 0
            _draw(axes, walk.limbs[row, agent], f"C{int(changed)}")
            for mark in range(int(middle_m) - 3, int(middle_m) + 4):
                axes.plot([mark, mark + 0.2], [-0.1, -0.2], color="0.6", linewidth=1.5)
            span = (middle_m - HALF_WIDTH_M, middle_m + HALF_WIDTH_M)
            axes.set(xlim=span, ylim=(-0.25, 1.75), aspect="equal")
            axes.set_title(LABELS[agent], loc="center", fontsize=11)
            axes.axis("off")
        figure.text(0.5, 0.03, f"{walk.time_s[row]:+.1f} s", ha="center", fontsize=10)
        figure.subplots_adjust(0.01, 0.06, 0.99, 0.9, 0.02)
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _draw(axes, limbs: np.ndarray, colour: str) -> None:
    axes.axhline(-0.06, color="0.6", linewidth=2)
    order = sorted(range(len(limbs)), key=lambda index: index <= N_RIGHT_LIMBS)
    for index in order:  # the left leg is behind
        axes.plot(
            *limbs[index].T,
            color=colour,
            alpha=0.45 if index > N_RIGHT_LIMBS else 1.0,
            linewidth=13 if index == 0 else 9,
            solid_capstyle="round",
        )


def main(path: Path) -> None:
    """Simulate, draw and write the film."""
    with tempfile.TemporaryDirectory() as folder:
        walk = simulate(Path(folder) / "walker.fallow", seed=0)
    rows = np.arange(
        walk.shift_row + round(FROM_S / walk.step_s),
        walk.shift_row + round(TO_S / walk.step_s),
        round(EVERY_S / walk.step_s),
    )
    frames = [frame(walk, row) for row in rows]
    few = frames[len(frames) // 2].quantize(N_COLOURS)
    pictures = [each.quantize(palette=few, dither=Image.Dither.NONE) for each in frames]
    pictures[0].save(
        path,
        save_all=True,
        append_images=pictures[1:],
        duration=[round(EVERY_S * 1000)] * (len(rows) - 1) + [1500],
        loop=0,
        optimize=True,
    )
    print(f"{path}: {len(rows)} frames, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "walker.gif"))
