"""The results that a fleet writes in training, resumed from a checkpoint."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from fallow.agents.fleet import Fleet
from fallow.core.legacy import ALGORITHM
from fallow.core.records import NO_REGIME
from fallow.core.results import Label, ResultRow, read_results, write_results
from fallow.replay.ledger import FREE, Ledger
from fallow.replay.staleness import interval_auc


class ResultTable:
    """The table of evaluations of one fleet, a row for each branch and frame.

    Every write replaces the file atomically.
    """

    def __init__(
        self, path: Path, labels: Sequence[Label], begin_frame: int = 0
    ) -> None:
        self.path = path
        self._labels = labels
        self._begin_frame = begin_frame  # of the branch point
        self._spent_s = 0.0  # before `_since`
        self._since = time.perf_counter()
        self.rows: list[ResultRow] = []
        self._begun: list[Callable[..., ResultRow]] = []

    def begin(self, fleet: Fleet) -> None:
        """Record the state of all branches when an evaluation begins."""
        wall_s = self._spent_s + time.perf_counter() - self._since
        self._begun = [
            partial(
                ResultRow,
                **asdict(label),
                frame=fleet.frame,
                branch_frame=fleet.frame - self._begin_frame,
                regime=int(fleet.worlds.regime[index]),
                updates=int(fleet.learners.updates[index]),
                auc=ledger_auc(
                    fleet.buffer.ledgers[index], int(fleet.worlds.regime[index])
                ),
                stale_share=_stale_share(fleet, index),
                wall_s=wall_s,
            )
            for index, label in enumerate(self._labels)
        ]

    def end(self, returns: np.ndarray) -> None:
        """Append what the evaluation gave, (R, n_episodes)."""
        for row, branch_returns in zip(self._begun, returns, strict=True):
            each = tuple(float(one) for one in branch_returns)
            self.rows.append(
                row(mean_return=float(branch_returns.mean()), returns=each)
            )
        write_results(self.path, self.rows)

    def keep_until(self, frame: int) -> None:
        """Cut the table back to a checkpoint; later rows will be written again.

        The clock continues from the last row kept.
        """
        found = read_results(self.path) if self.path.exists() else []
        self.rows = self._relabelled([row for row in found if row.frame <= frame])
        self._spent_s = max((row.wall_s or 0.0 for row in self.rows), default=0.0)
        self._since = time.perf_counter()
        write_results(self.path, self.rows)

    def _relabelled(self, rows: list[ResultRow]) -> list[ResultRow]:
        """Rows under today's labels; an earlier version may have named them otherwise.

        Every evaluation wrote one row for each branch, in their order.
        """
        n = len(self._labels)
        return [
            replace(row, **asdict(self._labels[index % n]), algorithm=ALGORITHM)
            for index, row in enumerate(rows[: len(rows) // n * n])
        ]


def ledger_auc(ledger: Ledger, regime_now: int) -> float | None:
    """Age–staleness AUC, eq. (2), of all transitions ever stored, kept or not.

    None where one kind is missing, or the condition has no regimes.
    """
    if regime_now == NO_REGIME:
        return None
    episodes, order = ledger.episode_ranges()
    labels = ledger.episodes["regime"][order].astype(np.int64)
    labels[ledger.episodes["stop"][order] == FREE] = regime_now
    # an episode's first row is an observation that no transition led to
    has_steps = episodes.stop - episodes.start > 1
    world, first = episodes.world[has_steps], episodes.start[has_steps] + 1
    start = ledger.times.time_of(world, first)
    end = ledger.times.time_of(world, episodes.stop[has_steps] - 1) + 1
    return interval_auc(start, end, labels[has_steps] != regime_now)


def _stale_share(fleet: Fleet, index: int) -> float | None:
    """Stale share of what was sampled since the last call."""
    sampler = fleet.buffer.samplers[index]
    sampled = sampler.record.composition(sampler.ledger)
    sampler.record.clear()
    return sampled.stale_share if sampled.n_steps else None
