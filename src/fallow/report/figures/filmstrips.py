"""Matched episodes of several rules side by side, as a strip and as a short film.

Branches of one seed begin an episode in the same pose, so only what the agents
learned differs. Episodes are simulated again from histories.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from fallow.core.errors import FallowError
from fallow.logs.history import History
from fallow.report import rendering
from fallow.report.names import rule_name
from fallow.views.plotting import SHADE, WIDTH_IN, styled
from fallow.views.rule_styles import rule_styles

STEPS = (0, 60, 120, 240, 360, 480)
"""Transitions after which a strip shows the body."""
FRAME_PX = (200, 150)
"""Width and height of one picture."""
ROW_IN = 0.72
"""Height of one rule in a strip."""
FILM_ROWS, FILM_EVERY = 300, 5
"""A film shows the first so many transitions, one picture for so many of them."""
FILM_QUALITY = 70


@dataclass(frozen=True)
class Scene:
    """The same episode of several branches of one seed."""

    histories: Mapping[str, History]
    """By rule."""
    episodes: Mapping[str, int]
    """Its place in each history."""
    start_frame: int
    """Of the agent's clock."""

    @property
    def n_transitions(self) -> int:
        """Of the shortest."""
        return min(
            self.histories[rule].episodes[index].n_transitions
            for rule, index in self.episodes.items()
        )

    @property
    def same_start(self) -> bool:
        """Whether all begin in the same state of the simulator."""
        states = [
            self.histories[r].episodes[i].start_state for r, i in self.episodes.items()
        ]
        first = states[0]
        return first is not None and all(
            other is not None and np.array_equal(first, other) for other in states[1:]
        )


def matched(histories: Mapping[str, History], regime: int | None = None) -> Scene:
    """The last episode that all histories have: same world, same frame at its start.

    With `regime` the last one that was wholly under it.

    Raises:
        FallowError: there is none.
    """
    places = []
    for history in histories.values():
        places.append(
            {
                (episode.start_frame, -episode.world): index
                for index, episode in enumerate(history.episodes)
                if regime is None
                or (episode.regime is not None and (episode.regime == regime).all())
            }
        )
    common = set.intersection(*(set(found) for found in places)) if places else set()
    if not common:
        raise FallowError(
            f"the histories of {', '.join(histories) or 'no rule'} share no episode"
            f"{'' if regime is None else f' under regime {regime}'}; use branches of "
            "one seed"
        )
    last = max(common)
    indices = {rule: found[last] for rule, found in zip(histories, places, strict=True)}
    return Scene(dict(histories), indices, last[0])


def filmstrip(scene: Scene, remarks: Mapping[str, str]) -> Figure:
    """One row of pictures for each rule, at `STEPS`; a remark at the right of each.

    Raises:
        FallowError: nothing can be rendered here.
    """
    shown = [step for step in STEPS if step <= scene.n_transitions]
    with styled():
        figure = Figure(figsize=(WIDTH_IN * 1.3, ROW_IN * len(scene.episodes) + 0.3))
        grid = figure.subplots(len(scene.episodes), len(shown), squeeze=False)
        styles = rule_styles(list(scene.episodes))
        films = _films(scene, shown)
        for row, rule, pictures in zip(grid, scene.episodes, films, strict=True):
            for axes, picture in zip(row, pictures, strict=True):
                axes.imshow(picture, aspect="equal", interpolation="antialiased")
                axes.set(xticks=[], yticks=[])
                axes.grid(False)
                for side in axes.spines.values():
                    side.set(visible=True, color=SHADE, linewidth=0.6)
            # options on a line of their own, or they run into the next row
            name = rule_name(rule).replace(" (", "\n(")
            colour = styles[rule].colour
            row[0].set_ylabel(name, color=colour, weight="bold", fontsize=7.5)
            if rule in remarks:
                row[-1].yaxis.set_label_position("right")
                row[-1].set_ylabel(
                    remarks[rule], fontsize=7.5, rotation=0, ha="left", va="center"
                )
        for axes, step in zip(grid[0], shown, strict=True):
            axes.set_title(f"step {step}", fontsize=8, loc="center")
        return figure


def film(scene: Scene) -> bytes:
    """A short film of all rules side by side, as an animated WebP.

    Raises:
        FallowError: nothing can be rendered here.
    """
    rows = range(0, min(FILM_ROWS, scene.n_transitions) + 1, FILM_EVERY)
    films = _films(scene, rows)
    pictures = [Image.fromarray(np.hstack(row)) for row in zip(*films, strict=True)]
    step_s = next(iter(scene.histories.values())).header.control_step_s
    file = io.BytesIO()
    pictures[0].save(
        file,
        format="WEBP",
        save_all=True,
        append_images=pictures[1:],
        duration=round(1000 * step_s * FILM_EVERY),
        loop=0,
        quality=FILM_QUALITY,
        method=2,
    )
    return file.getvalue()


def _films(scene: Scene, rows: Sequence[int]) -> list[np.ndarray]:
    """The pictures of every rule at some rows."""
    shots = [
        rendering.Shot(scene.histories[rule], episode, rows)
        for rule, episode in scene.episodes.items()
    ]
    return rendering.films(shots, *FRAME_PX)
