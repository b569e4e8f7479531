"""The tracker: an episode in, the regime in force out."""

from copy import copy
from typing import Any

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.tracking import regimes, saving
from fallow.tracking.body import BodyModel
from fallow.tracking.config import TrackerConfig
from fallow.tracking.contest import Usual
from fallow.tracking.decision import Models, Verdict, review, verdict_of
from fallow.tracking.evidence import Spread
from fallow.tracking.features import Basis, Design, Scaling, jump, scaling_of
from fallow.tracking.held import Held, Reading, Trial
from fallow.tracking.one_thread import one_blas_thread
from fallow.tracking.regimes import KnownRegime
from fallow.tracking.reporting import report
from fallow.tracking.signals import checked, defect, signals_of
from fallow.tracking.suspicion import HOLD, Suspicion
from fallow.tracking.update import TrackerUpdate

RECENT = 0.5
"""Share of the sums of recent episodes that remains after each episode."""


class Tracker:
    """Follows the regime of one body, online, from commands and driven velocities.

    Args:
        n_actuators: commands of a step, and velocities that they drive.
        control_step_s: seconds from one command to the next.
        config: settings, the false-alarm budget among them.

    Raises:
        FallowError: no actuator, or a control step that is not positive.
    """

    def __init__(
        self,
        n_actuators: int,
        control_step_s: float,
        config: TrackerConfig | None = None,
    ) -> None:
        options.check_int("tracker", "n_actuators", n_actuators, at_least=1)
        options.check_number("tracker", "control_step_s", control_step_s, above=0)
        self.n_actuators, self.control_step_s = n_actuators, control_step_s
        self.config = config or TrackerConfig()
        c, d = self.config, n_actuators
        self.basis = Basis(d, c.n_state_features, c.n_command_features, c.seed)
        self.bodies = [BodyModel(self.basis.n_features, d, c.memory_steps, c.drift)]
        """Body models: one of gains, and one of each `unexplained` regime."""
        self.spread = Spread(d)
        self.suspicion = Suspicion(c.false_alarms_per_1000, c.min_episodes)
        self.usual = Usual()
        self.recent = self.bodies[0].sums
        """Sums of the last few episodes, held ones included."""
        self.trial: Trial | None = None
        self.scaling: Scaling | None = None
        self.regimes = [KnownRegime(0, np.ones(d), np.ones(d))]
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
    def body(self) -> BodyModel:
        """The body model in force."""
        return self.bodies[self.regime.body]

    @property
    def _is_new(self) -> bool:
        few = self.regime.n_episodes < self.config.trial_episodes
        return self.present > 0 and few

    @property
    def _review_at(self) -> tuple[int, int]:
        return self.config.trial_episodes // 2, self.config.trial_episodes

    @property
    def threshold(self) -> float:
        """Nats against the present regime at which a change is examined."""
        return self.suspicion.threshold(self.regime, len(self.regimes))

    def labels(self) -> np.ndarray:
        """(n_episodes,) regime id of every episode seen."""
        return np.array(self.label_list, np.int64)

    def mismatch(self, i: int, j: int) -> float:
        """The mismatch of the gains of two regimes.

        Args:
            i: id of a regime.
            j: id of another.

        Returns:
            Root mean square over actuators of |g_i - g_j| / max(g_i, g_j), 0 to 1.
        """
        return regimes.mismatch(self.regimes[i], self.regimes[j])

    def update(self, velocities: np.ndarray, actions: np.ndarray) -> TrackerUpdate:
        """Read one finished episode.

        Args:
            velocities: (T + 1, d) of the driven joints, before and after each action.
            actions: (T, d) as commanded.

        Returns:
            The regime now in force, and which earlier labels changed.

        Raises:
            FallowError: wrong shapes.
        """
        v, a = checked(velocities, actions)
        before = {held.episode: self.label_list[held.episode] for held in self.held}
        self.label_list.append(self.present)
        note = defect(v, a, self.n_actuators)
        if not note and self.scaling is not None:
            note = jump(signals_of(v, a), self.scaling)
        with one_blas_thread():
            if note:
                self.n_skipped += 1
            elif self.scaling is None:
                self._warm_up(v, a)
            else:
                note = self._read(v, a, self.scaling)
            return report(self, before, note)

    def update_block(
        self, velocities: np.ndarray, actions: np.ndarray, *, is_last: bool
    ) -> TrackerUpdate:
        """Read T steps of a running episode.

        The episode is weighed as a whole with its last block; until then the regime
        stays.

        Args:
            velocities: (T + 1, d); the first repeats the last of the block before.
            actions: (T, d) as commanded.
            is_last: whether the episode ends with this block.

        Returns:
            The regime now in force.

        Raises:
            FallowError: wrong shapes.
        """
        block = checked(velocities, actions)
        if self.blocks and block[1].shape[1] != self.blocks[0][1].shape[1]:
            raise FallowError(
                f"a block of {block[1].shape[1]} actuators in an episode of "
                f"{self.blocks[0][1].shape[1]}; end the episode first"
            )
        self.blocks.append(block)
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

        Args:
            saved: what `save` returned.

        Returns:
            The tracker.

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
        self.body.warm_up(designs, self.regime.gain)
        self.regime.n_episodes += len(designs)
        self.held = []

    def _read(self, v: np.ndarray, a: np.ndarray, scaling: Scaling) -> str:
        """Weigh one episode; a sentence if the regime changed."""
        design = self.basis.design(signals_of(v, a), scaling)
        reading, ratios = self._reading(design)
        evidence = self.spread.weaken(reading.fit, self.regime.gain)
        self.suspicion.add(evidence, self.regime, self._others(), ratios)
        self.held.append(Held(self.n_episodes - 1, v, a, design, reading))
        limit = self.threshold
        largest, n_held = self.suspicion.largest, len(self.held)
        if largest >= limit and n_held >= self.config.min_episodes:
            note = self._decide(limit)
            if note:
                return note
        if largest < HOLD * limit or n_held >= self.config.max_suspicious:
            self._settle(self.held)
        return ""

    def _others(self) -> list[KnownRegime]:
        return [regime for regime in self.regimes if regime.id != self.present]

    def _reading(self, design: Design) -> tuple[Reading, dict[int | None, float]]:
        """What an episode says, and log likelihood ratios that gains do not give."""
        body, gain, usual = self.body, self.regime.gain, self.usual
        held = [h.reading.sums for h in self.held if h.reading is not None]
        weights = sum(held, body.sums).solve() if held else body.weights
        same = body.loss(design, gain, weights)
        recent = (body.vague + self.recent).solve()
        self.recent = self.recent * RECENT + body.sums_of(design, gain, recent)
        reading = Reading(
            body.fit(design, gain),
            body.sums_of(design, gain, body.weights),
            same - body.loss(design, gain, recent),
        )
        ratios: dict[int | None, float] = {None: usual.log_ratio(reading.gained)}
        for regime in self._others():
            if regime.body != self.regime.body:
                known = self.bodies[regime.body].weights
                gained = same - body.loss(design, regime.gain, known)
                ratios[regime.id] = usual.log_ratio(usual.mean + gained)
        return reading, ratios

    def _decide(self, limit: float) -> str:
        """Weigh the held episodes together; a sentence if the regime changed."""
        designs = [held.design for held in self.held if held.design is not None]
        verdict = verdict_of(designs, self._models(), limit)
        if verdict is None or (verdict.known is None and self._is_new):
            return ""
        if verdict.corrects and verdict.found is not None:
            self._correct(verdict.found.gain)
            return ""
        previous = self.present
        split = len(self.held) - verdict.n_recent
        earlier, recent = self.held[:split], self.held[split:]
        self._settle(earlier)
        self.suspicion.reset()
        self._enter(verdict, [held.design for held in recent if held.design])
        self._learn(recent)
        if previous == self.present:
            return ""
        return f"changed from regime {previous} to {self.present}"

    def _correct(self, gain: np.ndarray) -> None:
        """Correct the gains of the present regime, half way in logarithms."""
        self.regime.gain = np.sqrt(self.regime.gain * gain)
        self.suspicion.reset()
        self.recent = self.recent * 0.0
        self._learn(self.held)

    def _models(self) -> Models:
        return Models(
            self.bodies,
            self.spread,
            self.usual,
            self.regime,
            self._others(),
            self.config.min_episodes,
        )

    def _enter(self, verdict: Verdict, designs: list[Design]) -> None:
        """Make the other regime the present one."""
        found, known, before = verdict.found, verdict.known, self.regime
        self.recent = self.recent * 0.0
        if known is None and len(self.regimes) >= self.config.max_regimes:
            known = self._nearest(before.gain if found is None else found.gain)
        if known is None and found is None:
            self._enter_new_body(designs)
            return
        self.trial = None
        if known is None:
            assert found is not None
            known = KnownRegime(len(self.regimes), found.gain, before.gain, before.body)
            self.regimes.append(known)
            self.trial = Trial(copy(self.body), [])
        self.present = known.id

    def _enter_new_body(self, designs: list[Design]) -> None:
        """Enter a regime that no gains explain."""
        self.trial = None
        body = copy(self.body)
        body.restart(designs, self.regime.gain)
        self.bodies.append(body)
        gain, index = self.regime.gain, len(self.bodies) - 1
        self.regimes.append(KnownRegime(len(self.regimes), gain, gain, index))
        self.present = len(self.regimes) - 1

    def _nearest(self, gain: np.ndarray) -> KnownRegime:
        """The known regime whose gains are nearest, for a library that is full."""
        return min(self._others(), key=lambda r: regimes.gain_mismatch(r.gain, gain))

    def _settle(self, episodes: list[Held]) -> None:
        """Learn from held episodes as episodes of a body that did not change."""
        for held in [] if self._is_new else episodes:
            assert held.reading is not None
            self.spread.learn(held.reading.fit, self.regime.gain)
            self.usual.learn(held.reading.gained)
        if len(episodes) >= self.config.max_suspicious:
            self.suspicion.reset()
        self._learn(episodes)

    def _learn(self, episodes: list[Held]) -> None:
        """Learn from held episodes as episodes of the present regime."""
        for held in episodes:
            assert held.design is not None
            self.label_list[held.episode] = self.present
            self.body.learn(held.design, self.regime.gain)
            self.regime.n_episodes += 1
            if self.trial is not None:
                self.trial.held.append(held)
                if len(self.trial.held) in self._review_at:
                    self._review(self.trial)
        self.held = []

    def _review(self, trial: Trial) -> None:
        """Set a new regime's gains, or give it its own body, by all its episodes."""
        regime, before = self.regime, copy(trial.body)
        designs = [held.design for held in trial.held if held.design is not None]
        gain = review(designs, before, self._models())
        self.recent = self.recent * 0.0
        if gain is None or len(designs) >= self.config.trial_episodes:
            self.trial = None
        self.bodies[regime.body] = before
        if gain is None:
            self.bodies[regime.body] = trial.body
            before.restart(designs, regime.base)
            self.bodies.append(before)
            regime.gain, regime.body = regime.base, len(self.bodies) - 1
            regime.n_episodes = 0
        else:
            regime.gain = gain
        for design in designs:
            before.learn(design, regime.gain)
