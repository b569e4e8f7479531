"""J and D from the table of results.

    J = mean return over the evaluations after the shift
    D = J of one rule - J of another, of the same seed and trunk                 eq. (1)

An evaluation at the frame of the shift sees the new dynamics before the agent has
learned them, and does not count. Pairs are found by seed and trunk as it was
trained, never by the order of rows. A branch without all its
evaluations has no J: `missing` names it, and no mean includes it.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fallow.core.errors import FallowError
from fallow.core.results import ResultRow
from fallow.dynamics.schedules import SHIFT_FRAME
from fallow.study.summary import Missing, Summary, summarise

NO_CHANGE = "none"
BASELINE = "passive"
NO_ROW = "no row"
MOST_FRAMES = 3
"""Missing frames that are named; the rest is counted."""


@dataclass(frozen=True, order=True)
class Setting:
    """A setting in which rules are compared."""

    task: str
    agent: str
    preset: str
    condition: str
    trunk_set: str = ""
    """Name of the set of trunks, where a table holds several."""

    @property
    def without_change(self) -> "Setting":
        """The same with a body that never changes."""
        return replace(self, condition=NO_CHANGE)


Unit = tuple[int, str]
"""Seed and trunk: what is paired."""


@dataclass(frozen=True)
class BranchReturn:
    """J of one branch, or why it has none."""

    setting: Setting
    rule: str
    seed: int
    trunk: str
    """Its id, and its fingerprint where that is known."""
    frames: tuple[int, ...]
    """Branch frames of its evaluations after the shift."""
    value: float | None
    """J."""
    by_regime: tuple[tuple[int, float], ...] = ()
    """(regime, mean return over the evaluations under it)."""
    auc: float | None = None
    """Mean age–staleness AUC over the evaluations in which it is defined."""
    reason: str = ""
    """Why there is no J."""

    @property
    def unit(self) -> Unit:
        """The key that pairs it with others."""
        return self.seed, self.trunk

    @property
    def n_evaluations(self) -> int:
        """After the shift."""
        return len(self.frames)

    @property
    def trunk_id(self) -> str:
        """Of the recipe of its trunk."""
        return self.trunk.partition(" ")[0]


@dataclass(frozen=True)
class Returns:
    """J of every branch of a table, in an order that does not depend on its rows."""

    branches: tuple[BranchReturn, ...]
    seeds: tuple[int, ...] | None = None
    """The expected seeds; None: those that have a row under any condition."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All of them, sorted."""
        return tuple(sorted({branch.setting for branch in self.branches}))

    def rules(self, setting: Setting | None = None) -> tuple[str, ...]:
        """Those of one setting, or of all, sorted."""
        rules = {b.rule for b in self.branches if setting in (None, b.setting)}
        return tuple(sorted(rules))

    def of(self, setting: Setting, rule: str) -> dict[Unit, BranchReturn]:
        """The branches of one setting and rule."""
        return {
            b.unit: b for b in self.branches if (b.setting, b.rule) == (setting, rule)
        }

    def units(self, setting: Setting) -> tuple[Unit, ...]:
        """Seeds and trunks that should be in a setting; no trunk where none is known.

        A seed counts if it was asked for, or has a row under any condition.
        """
        alike = [
            b
            for b in self.branches
            if b.setting.without_change == setting.without_change
        ]
        found = {b.unit for b in alike if b.setting == setting}
        wanted = {b.seed for b in alike} if self.seeds is None else set(self.seeds)
        absent = wanted - {seed for seed, _ in found}
        return tuple(sorted(found | {(seed, "") for seed in absent}))


def returns_of(
    rows: Sequence[ResultRow],
    shift_frame: int = SHIFT_FRAME,
    seeds: Sequence[int] | None = None,
    n_evaluations: int | None = None,
    trunk_sets: Mapping[str, str] | None = None,
) -> Returns:
    """J of every branch: its mean return at branch frames after `shift_frame`.

    A branch must have all the evaluations that others of its task, agent and preset
    have, and `n_evaluations` where that is given. `trunk_sets` names the set of each
    trunk id, so that one seed's branches from two trunks are kept apart.

    Raises:
        FallowError: two rows of one branch and frame that do not agree, or rows of two
            trainings of one trunk.
    """
    check_trainings(rows)
    branches: dict[tuple[Setting, str, int, str], dict[int, ResultRow]]
    branches = defaultdict(dict)
    frames: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for row in rows:
        trunk_set = (trunk_sets or {}).get(row.trunk, "")
        place = (row.task, row.agent, row.preset)
        setting = Setting(*place, row.condition, trunk_set)
        by_frame = branches[setting, row.rule, row.seed, trunk_of(row)]
        if row.branch_frame > shift_frame:
            _check_same(by_frame.get(row.branch_frame), row)
            by_frame[row.branch_frame] = row
            frames[place].add(row.branch_frame)
    found = [
        _branch(key, by_frame, frames[key[0].task, key[0].agent, key[0].preset])
        for key, by_frame in branches.items()
    ]
    found = [_long_enough(branch, n_evaluations) for branch in found]
    found.sort(key=lambda b: (b.setting, b.rule, b.unit))
    return Returns(tuple(found), None if seeds is None else tuple(sorted(seeds)))


def trunk_of(row: ResultRow) -> str:
    """The key that pairs a row: the trunk's id, and its fingerprint if known."""
    return " ".join(filter(None, (row.trunk, row.trunk_fingerprint)))


def check_trainings(rows: Sequence[ResultRow]) -> None:
    """Raise if branches of one trunk began from two trainings of it.

    A recipe trained twice on an accelerator gives two agents, which are no pair.
    """
    seen: dict[str, str] = {}
    for row in rows:
        known = seen.setdefault(row.trunk, row.trunk_fingerprint)
        if known != row.trunk_fingerprint:
            raise FallowError(
                f"rows of trunk {row.trunk} come from two trainings of it, "
                f"'{known or 'unknown'}' and '{row.trunk_fingerprint or 'unknown'}', "
                "which cannot be paired; keep the rows of one of them"
            )


def of_regime(returns: Returns, regime: int) -> Returns:
    """J over the evaluations under one regime, of branches that have a J."""

    def one(branch: BranchReturn) -> BranchReturn:
        value = dict(branch.by_regime).get(regime)
        if value is not None or branch.value is None:
            return replace(branch, value=value)
        return replace(branch, value=None, reason=f"never in regime {regime}")

    return replace(returns, branches=tuple(one(b) for b in returns.branches))


def mean_return(returns: Returns, setting: Setting, rule: str) -> Summary:
    """J of one rule over seeds and trunks."""
    branches = returns.of(setting, rule)
    values, missing = [], []
    for unit in returns.units(setting):
        value, reason = _value(branches.get(unit))
        if value is None:
            missing.append(Missing(setting.condition, rule, unit[0], reason))
        else:
            values.append(value)
    return summarise(values, missing)


def difference(
    returns: Returns, setting: Setting, rule: str, against: str = BASELINE
) -> Summary:
    """D, eq. (1): J of `rule` less J of `against`, paired by seed and trunk."""
    return _contrast(returns, setting, ((1, setting, rule), (-1, setting, against)))


def difference_less_none(
    returns: Returns, setting: Setting, rule: str, against: str = BASELINE
) -> Summary:
    """D less the same seed's D with no change, which a rule costs by itself."""
    calm = setting.without_change
    terms = (
        (1, setting, rule),
        (-1, setting, against),
        (-1, calm, rule),
        (1, calm, against),
    )
    return _contrast(returns, setting, terms)


def setting_auc(returns: Returns, setting: Setting) -> float | None:
    """Mean age–staleness AUC of a setting's branches; None where it is undefined.

    It is one of the full history, whatever a rule keeps.
    """
    branches = [b for b in returns.branches if b.setting == setting and not b.reason]
    aucs = [b.auc for b in branches if b.auc is not None]
    return math.fsum(aucs) / len(aucs) if aucs else None


Term = tuple[int, Setting, str]
"""Sign, setting and rule of one J in a sum."""


def _contrast(returns: Returns, setting: Setting, terms: Sequence[Term]) -> Summary:
    """A signed sum of J for every seed and trunk of a setting that has all of them."""
    branches = [(*term, returns.of(term[1], term[2])) for term in terms]
    units = returns.units(setting)
    values: list[float] = []
    missing: dict[Missing, None] = {}
    for unit in units:
        signed = []
        for sign, place, rule, of_rule in branches:
            value, reason = _value(of_rule.get(unit))
            if value is None:
                missing[Missing(place.condition, rule, unit[0], reason)] = None
            else:
                signed.append(sign * value)
        if len(signed) == len(branches):
            values.append(math.fsum(signed))
    return summarise(values, tuple(missing), n_expected=len(units))


def _value(branch: BranchReturn | None) -> tuple[float | None, str]:
    return (None, NO_ROW) if branch is None else (branch.value, branch.reason)


def _branch(
    key: tuple[Setting, str, int, str],
    by_frame: Mapping[int, ResultRow],
    frames: set[int],
) -> BranchReturn:
    rows = [by_frame[frame] for frame in sorted(by_frame)]
    plain = BranchReturn(*key, frames=tuple(sorted(by_frame)), value=None)
    if not frames:
        return replace(plain, reason="no evaluation after the shift")
    if absent := sorted(frames - set(by_frame)):
        reason = f"{len(rows)} of {len(frames)} evaluations; none at branch frame "
        return replace(plain, reason=reason + _listed(absent))
    bad = [row.branch_frame for row in rows if not math.isfinite(row.mean_return)]
    if bad:
        reason = f"the return is not a number at branch frame {_listed(bad)}"
        return replace(plain, reason=reason)
    regimes = sorted({row.regime for row in rows})
    return replace(
        plain,
        value=_mean([row.mean_return for row in rows]),
        by_regime=tuple(
            (regime, _mean([r.mean_return for r in rows if r.regime == regime]))
            for regime in regimes
        ),
        auc=_mean_auc(rows),
    )


def _long_enough(branch: BranchReturn, n_evaluations: int | None) -> BranchReturn:
    if branch.reason or branch.n_evaluations >= (n_evaluations or 0):
        return branch
    reason = f"{branch.n_evaluations} of {n_evaluations} evaluations"
    return replace(branch, value=None, by_regime=(), reason=reason)


def _mean_auc(rows: Sequence[ResultRow]) -> float | None:
    defined = [row.auc for row in rows if row.auc is not None]
    return _mean(defined) if defined else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _check_same(before: ResultRow | None, row: ResultRow) -> None:
    if before is None or before.mean_return == row.mean_return:
        return
    if math.isnan(before.mean_return) and math.isnan(row.mean_return):
        return
    raise FallowError(
        f"two rows of {row.condition}, {row.rule}, seed {row.seed} at branch frame "
        f"{row.branch_frame:,} give returns of {before.mean_return:g} and "
        f"{row.mean_return:g}; keep the one that belongs to the study"
    )


def _listed(frames: Sequence[int]) -> str:
    rest = f" and {len(frames) - MOST_FRAMES} more" if len(frames) > MOST_FRAMES else ""
    return ", ".join(f"{frame:,}" for frame in frames[:MOST_FRAMES]) + rest
