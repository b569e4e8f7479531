"""Samples rows by a rule over a ledger; never reads the stored data.

The same sampler serves a buffer on the host and a fleet whose bytes are on an
accelerator: it returns rows, and the buffer gathers them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fallow.core import legacy, options, seeds
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.replay import requests, rule_checks
from fallow.replay.composition import Record, Tally
from fallow.replay.episode_starts import Starts
from fallow.replay.labeler import Labeler
from fallow.replay.ledger import Ledger, Victim
from fallow.replay.rules import Rule
from fallow.replay.spans import Pieces, Spans, sample, sample_starts, unbroken


class Sampler:
    """Samples sequences of steps by a rule."""

    def __init__(
        self,
        ledger: Ledger,
        rule: str | Rule,
        seed: int = 0,
        sample_running: bool = True,
        make_labeler: Callable[[], Labeler] | None = None,
    ) -> None:
        self.ledger = ledger
        self.labeler: Labeler | None = None
        self.make_labeler = make_labeler
        self.record = Record()
        self._sample_running = sample_running
        self._random = seeds.generator(seed, "replay-draws")
        self.set_rule(rule)

    def set_rule(self, rule: str | Rule) -> None:
        """Continue under a rule; it is checked before it replaces the old one."""
        rule = Rule.parse(rule)
        rule.check(self.ledger)
        if not rule.needs_tracker:
            if self.labeler is not None:
                self._forget_labels()
            self.labeler = None
        elif self.labeler is None:
            self.labeler = self.new_labeler(rule)
        self.rule = rule
        self.victim: Victim | None = rule.victim if rule.keeps_by_key else None
        self._given: tuple[Spans, ...] = ()  # by the rule
        self._parts: tuple[Spans, ...] = ()  # what of it can be sampled
        self._n_stored = 0
        self._version = -1
        self._starts = Starts()

    def new_labeler(self, rule: Rule) -> Labeler:
        """One that has seen nothing, for a rule that needs it."""
        if self.make_labeler is None:
            raise FallowError(
                f"rule '{rule}' reads velocities and actions; name their fields, e.g. "
                'Buffer(…, tracked=Tracked("observation[18:24]", "action"))'
            )
        labeler = self.make_labeler()
        labeler.record = self.record
        return labeler

    def _forget_labels(self) -> None:
        """Remove those of a tracker that stops; a later one numbers regimes anew."""
        self.record.count(self.ledger)
        self.ledger.set_labels(
            range(self.ledger.episodes.n), np.array(NO_REGIME, np.int16)
        )
        self.ledger.set_beliefs((), np.zeros((0, 0)))

    def parts(self) -> tuple[Spans, ...]:
        """The spans that the rule allows now, without those of weight 0."""
        if self._version != self.ledger.version:
            if self.rule.needs_visits:
                self.record.count(self.ledger)
            given = rule_checks.parts_of(self.rule, self.ledger, self._given)
            self._given, parts = given, map(self._possible, given)
            self._parts = tuple(spans for spans in parts if len(spans.world))
            self._n_stored = self.ledger.stored().n_steps
            self._version = self.ledger.version
        return self._parts

    def _possible(self, spans: Spans) -> Spans:
        """Without the steps of running episodes, if so, and those of weight 0."""
        if not self._sample_running:
            spans = self.ledger.finished(spans)
        return spans.masked_out()

    def sample(self, batch: int, length: int, within_episodes: bool = False) -> Pieces:
        """Sample `batch` sequences of `length` steps.

        With `within_episodes` each of them lies in one finished episode.
        """
        batch = options.integer("sample", "batch", batch, at_least=1)
        length = options.integer("sample", "length", length, at_least=1)
        parts = self.parts()
        if not parts:
            self._explain_empty()
        if length > self._n_stored:
            raise FallowError(
                f"a sequence of {length} steps was asked for and {self._n_stored} are "
                "stored; store more or ask for shorter ones"
            )
        if within_episodes:
            pieces = self._sample_within(batch, length)
        else:
            pieces = sample(self._one_of(parts), batch, length, self._random)
        self.record.add(self.ledger, pieces)
        return pieces

    def _one_of(self, parts: Sequence[Spans]) -> Spans:
        if len(parts) == 1:
            return parts[0]
        return parts[int(self._random.integers(len(parts)))]

    def _sample_within(self, batch: int, length: int) -> Pieces:
        parts = self._starts.of(self.ledger, self.parts(), length)
        if not parts:
            raise FallowError(
                f"rule '{self.rule}' leaves no finished episode of {length} steps in a "
                "row; wait until one is stored (see `can_sample`) or ask for "
                "shorter sequences"
            )
        starts = self._one_of(parts)
        chosen, offset = sample_starts(starts, batch, self._random)
        return unbroken(starts.world[chosen], starts.start[chosen] + offset, length)

    def can_sample(self, length: int, within_episodes: bool = False) -> bool:
        """Whether `sample` can give sequences of `length` steps now."""
        parts = self.parts()
        if not parts or length > self._n_stored:
            return False
        return not within_episodes or bool(self._starts.of(self.ledger, parts, length))

    def _explain_empty(self) -> None:
        if sum(self.ledger.heads) == 0:
            raise FallowError("the buffer is empty; add steps before sampling")
        raise FallowError(
            f"rule '{self.rule}' masks all {self.ledger.stored().n_steps} stored "
            "steps; store more, or choose another rule"
        )

    def rows(self, pieces: Pieces, batch: int, length: int) -> np.ndarray:
        """(batch, length) rows of sampled sequences."""
        before = np.cumsum(pieces.length) - pieces.length
        serial = np.repeat(pieces.serial - before, pieces.length)
        serial += np.arange(batch * length)
        world = np.repeat(pieces.world, pieces.length)
        return self.ledger.rows(world, serial).reshape(batch, length)

    def set_present_regime(self, regime: int) -> None:
        """The regime now in force: the truth, or an estimate."""
        regime = requests.regime_of(regime)
        self.record.count(self.ledger)
        self.ledger.present_regime = regime
        self.ledger.version += 1

    def settle(self) -> None:
        """Count all samples and recompute weights that depend on them.

        A saved buffer and its copy then continue alike.
        """
        self.record.count(self.ledger)
        if self.rule.needs_visits:
            self.ledger.version += 1

    def save(self) -> dict[str, Any]:
        """Rule, random state and what was sampled, as JSON; `settle` first."""
        return {
            "rule": str(self.rule),
            "algorithm": legacy.ALGORITHM,
            "random": self._random.bit_generator.state,
            "drawn": self.record.tally.to_json(),
        }

    def saved_rule(self, saved: dict[str, Any]) -> Rule:
        """The rule that `save` wrote; an error if it cannot work here."""
        is_old = saved.get("algorithm", 1) in legacy.WITH_CHUNKS
        rule = Rule.parse(legacy.rule(saved["rule"]) if is_old else saved["rule"])
        rule.check(self.ledger)
        return rule

    def restore(self, saved: dict[str, Any], labeler: Labeler | None = None) -> None:
        """Take back what `save` gave, and the labeler of that time."""
        self.labeler = labeler
        self.set_rule(self.saved_rule(saved))
        self._random.bit_generator.state = saved["random"]
        self.record.clear()
        self.record.tally = Tally.from_json(saved["drawn"])
