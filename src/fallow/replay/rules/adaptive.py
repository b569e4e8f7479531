"""Weight every regime by its mismatch with the one in force."""

from dataclasses import dataclass

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.replay.ledger import Ledger
from fallow.replay.rules.rule import Rule, register
from fallow.replay.spans import Spans

LABELS = ("tracker", "true")


@register("adaptive")
@dataclass(frozen=True)
class Adaptive(Rule):
    """regimes by their mismatch with the one in force, which a tracker recognises

    Regime c is in force. A step of regime k, of which n_k steps are stored and whose
    mismatch with c is m, has the start weight (the paper's eq. 4, as replay)

        w_k = kappa / (kappa + n_k),   kappa = kappa_transitions / m^2,   w_c = 1.

    While the tracker is unsure which regime is in force, weights are means over its
    probabilities. Stale share: with S stale and F fresh steps, w S / (w S + F).
    """

    kappa_transitions: float = 1500.0
    """Stored steps of a regime with mismatch 1 that halve its weight."""
    labels: str = "tracker"
    """Source of labels: `tracker`, the buffer's, or `true`, the regimes given to it."""
    unknown_mismatch: float = 0.5
    """Mismatch of regimes that no change of gains explains."""

    colour = "#008c95"

    def __post_init__(self) -> None:
        owner = "rule 'adaptive'"
        options.check_number(
            owner, "kappa_transitions", self.kappa_transitions, above=0
        )
        options.check_number(owner, "unknown_mismatch", self.unknown_mismatch, above=0)
        if self.labels not in LABELS:
            raise FallowError(
                f"{owner}: labels is '{options.shown(self.labels)}'; choose tracker or "
                "true"
            )

    @property
    def needs_tracker(self) -> bool:
        return self.labels == "tracker"

    @property
    def needs_true_gains(self) -> bool:
        return self.labels == "true"

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        labels, present = self._labels(ledger)
        if len(present) <= 1:  # a single regime is known
            return (ledger.stored(),)
        spans = ledger.episode_spans(labels.astype(float))
        assert spans.weight is not None
        label = spans.weight.astype(np.int64)
        n_steps = np.bincount(label, spans.length, len(present))
        weight = present @ self._weights(ledger, n_steps)
        return (Spans(spans.world, spans.start, spans.stop, weight[label]),)

    def _labels(self, ledger: Ledger) -> tuple[np.ndarray, np.ndarray]:
        """Label of every episode; probability of each regime to be in force, (K,)."""
        if self.needs_tracker:
            labels, known = ledger.episode_labels(), ledger.label_probabilities
        elif ledger.present_regime == NO_REGIME:
            raise FallowError(
                "rule 'adaptive:labels=true' needs the regime in force: pass regime=… "
                "to add"
            )
        else:
            labels = ledger.episode_regimes().astype(np.int64)
            known = np.eye(1 + ledger.present_regime)[ledger.present_regime]
        present = np.zeros(max(len(known), 1 + int(labels.max(initial=0))))
        present[: len(known)] = known
        return labels, present

    def _weights(self, ledger: Ledger, n_steps: np.ndarray) -> np.ndarray:
        """(K, K) start weight of steps of regime k while c is in force, [c, k]."""
        n = len(n_steps)
        mismatch = np.full((n, n), self.unknown_mismatch)
        known = np.asarray(ledger.label_mismatch, float)
        if known.size:
            some = mismatch[: len(known), : len(known)]
            some[known >= 0] = known[known >= 0]
        kappa = self.kappa_transitions / np.maximum(mismatch, 1e-9) ** 2
        weights = kappa / (kappa + n_steps)
        np.fill_diagonal(weights, 1.0)
        return weights
