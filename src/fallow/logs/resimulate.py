"""Runs a recorded episode again, to look at it or to render it."""

from collections.abc import Iterator

from fallow.core.errors import FallowError
from fallow.dynamics import Worlds
from fallow.logs.history import History


def resimulate(history: History, index: int) -> Iterator[Worlds]:
    """Yield a single world at row 0, 1, …, T of episode `index`, simulated anew.

    `worlds.observation` is then the recorded one, exactly if the history was recorded
    with the same MuJoCo, and `worlds.snapshot()` gives model and data to render.
    """
    if not 0 <= index < len(history.episodes):
        raise FallowError(
            f"there is no episode {index}; the history has 0 to "
            f"{len(history.episodes) - 1}"
        )
    episode, about = history.episodes[index], history.header.about
    if episode.start_state is None:
        raise FallowError(f"episode {index} was recorded without a simulator's state")
    worlds = Worlds(
        about["task"],
        about["condition"],
        schedule_seeds=[about["schedule_seed"]],
        action_repeat=about["action_repeat"],
        frames_per_step=history.header.frames_per_step,
        n_threads=1,
    )
    worlds.set_clock(episode.start_frame)
    worlds.set_state(0, 0, episode.start_state, endless=True)
    yield worlds
    for action in episode.action:
        worlds.step(action[None, None])
        yield worlds
