"""States of NumPy's random generators as arrays, to save and to restore."""

from collections.abc import Mapping, Sequence

import numpy as np


def packed(
    randoms: Sequence[np.random.RandomState], shape: tuple[int, ...]
) -> dict[str, np.ndarray]:
    """The states of generators as arrays with leading axes of a shape."""
    states = [random.get_state(legacy=False) for random in randoms]
    words = np.array([s["state"]["key"] for s in states], np.uint32)
    places = [[s["state"]["pos"], s["has_gauss"]] for s in states]
    return {
        "random_words": words.reshape(*shape, -1),
        "random_places": np.array(places, np.int64).reshape(*shape, 2),
        "random_gauss": np.array([s["gauss"] for s in states]).reshape(shape),
    }


def restore(
    randoms: Sequence[np.random.RandomState], saved: Mapping[str, np.ndarray]
) -> None:
    """Set the generators to states that `packed` returned."""
    words = saved["random_words"].reshape(len(randoms), -1)
    places = saved["random_places"].reshape(len(randoms), 2)
    for random, key, (pos, has_gauss), gauss in zip(
        randoms, words, places, saved["random_gauss"].flat, strict=True
    ):
        random.set_state(("MT19937", key, int(pos), int(has_gauss), float(gauss)))
