"""The tracker: an episode in, the regime in force out."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.tracking import regimes, saving
from fallow.tracking.body import BodyModel
from fallow.tracking.config import TrackerConfig
from fallow.tracking.decision import Verdict, judge
from fallow.tracking.evidence import Spread
from fallow.tracking.features import Basis, Design, Scaling, scaling_of
from fallow.tracking.hypotheses import Explanation
from fallow.tracking.regimes import KnownRegime
from fallow.tracking.reporting import report
from fallow.tracking.signals import checked, defect, signals_of
from fallow.tracking.suspicion import HOLD, Suspicion
from fallow.tracking.update import TrackerUpdate

TRIAL_SHARE = 1.0
"""Of the score that made a regime known, which another new regime must reach while that
one is on trial; below it the regime's explanation is revised instead."""


@dataclass(frozen=True)
class Held:
    """A recent episode that is not learned from yet."""

    episode: int
    velocities: np.ndarray  # (T + 1, d)
    actions: np.ndarray  # (T, d)
    design: Design | None = None
    """None before the end of warm-up."""


class Tracker:
    """Follows the regime of one body, online, from commands and driven velocities.

    Raises:
        FallowError: no actuator, or a control step that is not positive.
    """

    def __init__(
        self,
        n_actuators: int,
        control_step_s: float,
        config: TrackerConfig | None = None,
    ) -> None:
        if n_actuators < 1:
            raise FallowError(f"{n_actuators} actuators; a tracker needs 1 or more")
        if not control_step_s > 0:
            raise FallowError(
                f"a control step of {control_step_s} s; choose one above 0"
            )
        self.n_actuators, self.control_step_s = n_actuators, control_step_s
        self.config = config or TrackerConfig()
        c, d = self.config, n_actuators
        self.basis = Basis(d, c.n_state_features, c.n_command_features, c.seed)
        self.body = BodyModel(self.basis.n_features, d, c.memory_steps, c.drift)
        self.spread = Spread(d)
        self.suspicion = Suspicion(c.false_alarms_per_1000, c.min_episodes)
        self.scaling: Scaling | None = None
        first = np.repeat([1.0, 0.0], d)
        self.regimes = [KnownRegime(0, first, first)]
        """The library, by id."""
        self.present = 0
        """Id of the regime in force."""
        self.n_skipped = 0
        """Episodes that could not be used."""
        self.label_list: list[int] = []
        self.held: list[Held] = []
        self.blocks: list[tuple[np.ndarray, np.ndarray]] = []

    @property
    def n_episodes(self) -> int:
        """Episodes seen, skipped ones included."""
        return len(self.label_list)

    @property
    def regime(self) -> KnownRegime:
        """The regime in force."""
        return self.regimes[self.present]

    @property
    def threshold(self) -> float:
        """Nats against the present regime at which a change is examined."""
        return self.suspicion.threshold(self.regime, len(self.regimes))

    def labels(self) -> np.ndarray:
        """(n_episodes,) regime id of every episode seen."""
        return np.array(self.label_list, np.int64)

    def mismatch(self, i: int, j: int) -> float:
        """How far the gains of regimes i and j lie apart, from 0 to 1."""
        return regimes.mismatch(self.regimes[i], self.regimes[j])

    def update(self, velocities: np.ndarray, actions: np.ndarray) -> TrackerUpdate:
        """Read one finished episode: (T + 1, d) velocities, (T, d) commanded actions.

        Raises:
            FallowError: wrong shapes.
        """
        v, a = checked(velocities, actions, self.n_actuators)
        before = {held.episode: self.label_list[held.episode] for held in self.held}
        self.label_list.append(self.present)
        note = defect(v, a)
        if note:
            self.n_skipped += 1
            return report(self, before, note)
        if self.scaling is None:
            self._warm_up(v, a)
            return report(self, before, "")
        return report(self, before, self._read(v, a, self.scaling))

    def update_block(
        self, velocities: np.ndarray, actions: np.ndarray, *, is_last: bool
    ) -> TrackerUpdate:
        """Read T steps of a running episode: (T + 1, d) velocities, (T, d) actions.

        The first velocity repeats the last one of the block before. The episode is
        weighed as a whole with its last block; until then the regime stays.

        Raises:
            FallowError: wrong shapes.
        """
        self.blocks.append(checked(velocities, actions, self.n_actuators))
        if not is_last:
            n_steps = sum(len(a) for _, a in self.blocks)
            return report(self, {}, f"{n_steps} steps of an episode")
        first = self.blocks[0][0][:1]
        v = np.concatenate([first, *(v[1:] for v, _ in self.blocks)])
        a = np.concatenate([a for _, a in self.blocks])
        self.blocks = []
        return self.update(v, a)

    def save(self) -> dict[str, Any]:
        """The whole state: arrays by name, and a JSON-able dict under `header`."""
        return saving.save(self)

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "Tracker":
        """A tracker that continues exactly where `save` was called.

        Raises:
            FallowError: the state is of another version.
        """
        return saving.restore(cls, saved)

    def _warm_up(self, v: np.ndarray, a: np.ndarray) -> None:
        self.held.append(Held(self.n_episodes - 1, v, a))
        if len(self.held) < self.config.warm_up_episodes:
            return
        signals = [signals_of(held.velocities, held.actions) for held in self.held]
        self.scaling = scaling_of(signals)
        designs = [self.basis.design(s, self.scaling) for s in signals]
        self.body.warm_up(designs, self.regime.theta)
        self.regime.n_episodes += len(designs)
        self.held = []

    def _read(self, v: np.ndarray, a: np.ndarray, scaling: Scaling) -> str:
        """Weigh one episode; a sentence if the regime changed."""
        design = self.basis.design(signals_of(v, a), scaling)
        fit = self.body.fit(design, self.regime.theta)
        evidence = self.spread.weaken(fit, self.regime.theta)
        self.suspicion.add(evidence, self.regime, self.regimes)
        self.held.append(Held(self.n_episodes - 1, v, a, design))
        limit = self.threshold
        largest, n_held = self.suspicion.largest, len(self.held)
        if largest >= limit and n_held >= self.config.min_episodes:
            verdict = self._verdict()
            if verdict.accepted(limit):
                return self._accept(verdict)
        if largest < HOLD * limit:
            self.spread.learn(fit, self.regime.theta)
            self._learn(self.held)
        elif n_held >= self.config.max_suspicious:
            self.suspicion.reset()
            self._learn(self.held)
        return ""

    def _verdict(self) -> Verdict:
        return judge(
            [held.design for held in self.held if held.design is not None],
            self.body,
            self.spread,
            self.regime,
            [r for r in self.regimes if r.id != self.present],
            self.config.min_episodes,
        )

    def _accept(self, verdict: Verdict) -> str:
        """Enter the other regime, or revise the present one while it is on trial."""
        found, known, previous = verdict.found, verdict.known, self.present
        self.suspicion.reset()
        split = len(self.held) - verdict.n_recent
        earlier, recent = self.held[:split], self.held[split:]
        self._learn(earlier)
        on_trial = self.regime.n_episodes < self.config.trial_episodes
        clear = found.score >= TRIAL_SHARE * self.regime.score
        if known is None and self.present and on_trial and not clear:
            self.regime.revise(found)
        elif known is None:
            known = self._new_regime(found)
        self.present = self.present if known is None else known.id
        self._learn(recent)
        if known is None:
            return ""
        return f"changed from regime {previous} to {self.present}"

    def _new_regime(self, found: Explanation) -> KnownRegime:
        """Add a regime to the library; the nearest known one if that is full."""
        base, regimes = self.regime.theta, self.regimes
        if len(regimes) >= self.config.max_regimes:
            others = [r for r in regimes if r.id != self.present]
            return min(
                others, key=lambda r: float(((r.theta - found.theta) ** 2).sum())
            )
        new = KnownRegime(len(regimes), found.theta, base, found.is_gain, found.score)
        regimes.append(new)
        return new

    def _learn(self, episodes: list[Held]) -> None:
        """Learn from held episodes as episodes of the present regime."""
        for held in episodes:
            assert held.design is not None
            self.label_list[held.episode] = self.present
            self.body.learn(held.design, self.regime.theta)
            self.regime.n_episodes += 1
        self.held = []
