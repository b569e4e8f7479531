"""The paper's evaluation of its estimator: 24 histories, one a training run.

Each history is that of a trunk followed by a `passive` branch of it, prefill included.
The selector reads all of it at once, and is right where it chooses the rule with the
higher return: `recency` (10,000 transitions) where that seed's D is positive, `passive`
where it is negative. `fallow study selector` makes the histories: five conditions, five
seeds each; the paper has one fewer and does not say which. It cut those of the 20k
period at 314 episodes, so every decision is shown with that cut and without.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fallow.core.errors import FallowError
from fallow.diagnosis.decision import Decision, decide
from fallow.diagnosis.truth import (
    Truth,
    decision_delay,
    location_error,
    n_false,
    truth_of,
)
from fallow.logs.joining import read_joined
from fallow.logs.log import Log
from fallow.study.statistics import BASELINE, NO_CHANGE, Returns, Setting

RECENCY = "recency"
"""The rule of `discard`, and the only window that the selector is evaluated with."""
CONDITIONS = (
    "recurring",
    "recurring:period_frames=60000",
    "recurring:period_frames=80000",
    "gain:g=0.6",
    "gain",
)
"""Of the 24 histories: five seeds each, one of them missing in the paper."""
CUT_EPISODES: Mapping[str, int] = {"recurring": 314}
"""Where the paper cut its histories, by condition: those of the 20k period only."""
FOUND_WITHIN = 3
"""Episodes; the paper finds its permanent change "within three episodes"."""


@dataclass(frozen=True)
class SelectorCase:
    """One training run to evaluate: its branch, and where its two histories are.

    The branch is a `passive` one.
    """

    setting: Setting
    seed: int
    trunk: str
    """Id of the trunk, as in the table of results."""
    trunk_history: Path
    branch_history: Path


@dataclass(frozen=True)
class Change:
    """One recorded change, and where the estimator found it."""

    episode: int
    """First of the new regime."""
    error: int | None
    """Episodes from it to the nearest change found afterwards; negative: before it."""
    delay: int | None
    """Episodes of the new regime seen when it was first found from the past alone."""

    @property
    def found(self) -> bool:
        """Whether one was put within three episodes of it."""
        return self.error is not None and abs(self.error) <= FOUND_WITHIN


@dataclass(frozen=True)
class SelectorResult:
    """The selector's choice for one history, and whether it was right."""

    case: SelectorCase
    n_episodes: int
    decision: Decision
    truth: Truth | None
    changes: tuple[Change, ...]
    n_false: int
    """Changes found where none was."""
    advantage: float | None
    """D of that seed; None where a branch has no J."""
    notes: tuple[str, ...] = ()
    """Notes on how the histories were read."""

    @property
    def chosen(self) -> str:
        """The rule that the selector takes."""
        return self.decision.rule

    @property
    def better(self) -> str | None:
        """The rule with the higher return; None where there is none."""
        if not self.advantage:
            return None
        return RECENCY if self.advantage > 0 else BASELINE

    @property
    def right(self) -> bool | None:
        """Whether the better rule was chosen; None where there is none."""
        return None if self.better is None else self.chosen == self.better


@dataclass(frozen=True)
class UnreadHistory:
    """A history that could not be evaluated, and why."""

    case: SelectorCase
    reason: str


@dataclass(frozen=True)
class Agreement:
    """One bar: how often the selector chose the better rule."""

    condition: str | None
    """None: all histories in which the body changed."""
    n_right: int
    n: int
    """Histories that have a better rule: readable, and D is known and not 0."""


def evaluate(
    cases: Iterable[SelectorCase],
    returns: Returns,
    cut_episodes: Mapping[str, int] = CUT_EPISODES,
) -> list[SelectorResult | UnreadHistory]:
    """Evaluate every history; one that cannot be read is returned with the reason."""
    found: list[SelectorResult | UnreadHistory] = []
    for case in cases:
        cut = cut_episodes.get(case.setting.condition)
        try:
            log = read_joined(case.trunk_history, case.branch_history, cut)
            found.append(evaluate_case(case, log, advantage(returns, case)))
        except (FallowError, OSError) as error:
            found.append(UnreadHistory(case, str(error)))
    return found


def evaluate_case(
    case: SelectorCase, log: Log, advantage: float | None
) -> SelectorResult:
    """Run the selector on a full history and compare it with the truth and D.

    Raises:
        FallowError: too few episodes, or no actions.
    """
    decision, truth = decide(log), truth_of(log)
    true = () if truth is None else truth.change_points
    points = decision.change_points
    changes = tuple(
        Change(
            episode=at,
            error=location_error(points, at),
            delay=decision_delay(decision.response, at, FOUND_WITHIN),
        )
        for at in true
    )
    return SelectorResult(
        case=case,
        n_episodes=log.n_episodes,
        decision=decision,
        truth=truth,
        changes=changes,
        n_false=n_false(points, true, FOUND_WITHIN),
        advantage=advantage,
        notes=log.notes,
    )


def advantage(returns: Returns, case: SelectorCase) -> float | None:
    """D of one seed and trunk; None where one of the two branches has no J."""
    values: dict[str, dict[str, float]] = {RECENCY: {}, BASELINE: {}}
    for rule, by_trunk in values.items():
        for branch in returns.of(case.setting, rule).values():
            place = (branch.seed, branch.trunk_id)
            if place == (case.seed, case.trunk) and branch.value is not None:
                by_trunk[branch.trunk] = branch.value
    both = set(values[RECENCY]) & set(values[BASELINE])
    if len(both) != 1:
        return None
    trunk = both.pop()
    return values[RECENCY][trunk] - values[BASELINE][trunk]


def agreement(results: Sequence[SelectorResult | UnreadHistory]) -> list[Agreement]:
    """The bars: one for each condition, the paper's first, and one for all changes."""
    conditions = {result.case.setting.condition for result in results}
    order = [name for name in CONDITIONS if name in conditions]
    order += sorted(conditions - set(order))
    return [_bar(results, name) for name in (*order, None)] if results else []


def is_the_papers(results: Sequence[SelectorResult | UnreadHistory]) -> bool:
    """Whether these are the paper's five conditions, of as many seeds each."""
    counts = Counter(result.case.setting.condition for result in results)
    return set(counts) == set(CONDITIONS) and len(set(counts.values())) == 1


def without_any_one(bar: Agreement) -> tuple[int, int]:
    """The fewest and the most right decisions when one history is left out."""
    return max(bar.n_right - 1, 0), min(bar.n_right, bar.n - 1)


def _bar(
    results: Sequence[SelectorResult | UnreadHistory], condition: str | None
) -> Agreement:
    counted = [r for r in results if is_in(r.case.setting.condition, condition)]
    verdicts = [r.right for r in counted if isinstance(r, SelectorResult)]
    decided = [right for right in verdicts if right is not None]
    return Agreement(condition, sum(decided), len(decided))


def is_in(condition: str, bar: str | None) -> bool:
    """Whether a bar counts a condition; that of all changes leaves `none` out."""
    return condition != NO_CHANGE if bar is None else condition == bar
