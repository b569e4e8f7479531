"""When steps were stored: the time of every serial of every world.

Serials of a world count its own steps, times those of the agent. The two differ by a
lag that changes only where a world paused, so a table of those places is enough.
"""

import numpy as np

from fallow.replay.growing_table import GrowingTable


class StepTimes:
    """Times of the steps of some worlds."""

    def __init__(self, n_worlds: int) -> None:
        self.lags: list[int | None] = [None] * n_worlds
        """Time less serial of each world, now; None: it has no step yet."""
        self._places = [
            GrowingTable(serial=np.int64, time=np.int64) for _ in range(n_worlds)
        ]

    def note(self, world: int, serial: int, time: int) -> None:
        """A step is stored at a time."""
        if time - serial != self.lags[world]:
            self.lags[world] = time - serial
            self._places[world].append(serial=serial, time=time)

    def serial_at(self, world: int, time: int, head: int) -> int:
        """First serial of a world whose time is not before `time`, at most `head`."""
        places = self._places[world]
        if places.n == 0:
            return 0
        place = int(np.searchsorted(places["time"], time, side="right")) - 1
        if place < 0:
            return 0
        serial = int(places["serial"][place]) + time - int(places["time"][place])
        is_last = place + 1 == places.n
        return min(serial, head if is_last else int(places["serial"][place + 1]))

    def time_of(self, world: np.ndarray, serial: np.ndarray) -> np.ndarray:
        """When steps were stored."""
        out = np.zeros(len(serial), np.int64)
        for index, places in enumerate(self._places):
            mine = world == index
            place = np.searchsorted(places["serial"], serial[mine], side="right") - 1
            lag = places["time"] - places["serial"]
            out[mine] = serial[mine] + lag[place]
        return out

    def save(self) -> dict[str, np.ndarray]:
        """All places; `lags` are saved by the ledger."""
        arrays: dict[str, np.ndarray] = {}
        for world, places in enumerate(self._places):
            arrays |= places.save(f"clock{world}")
        return arrays

    def restore(self, arrays: dict[str, np.ndarray], lags: list[int | None]) -> None:
        """Take back what `save` gave."""
        self.lags = list(lags)
        for world, places in enumerate(self._places):
            places.restore(f"clock{world}", arrays)
