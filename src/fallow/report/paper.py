"""The paper's numbers, with the place where each is printed.

"Characterizing Replay Retention Under Dynamics Shift in Model-Based Reinforcement
Learning" (Yang, Thompson, Konidaris). Five seeds, mean and standard error. Conditions
and rules carry our names. Values that only its figures show are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

WALKER, CHEETAH = "walker-walk", "cheetah-run"
DREAMER, TDMPC = "dreamer", "tdmpc"
PASSIVE = "passive"


@dataclass(frozen=True)
class Published:
    """A number of the paper; `mean` is None where it gives the sign alone."""

    mean: float | None
    se: float | None = None
    source: str = ""
    """Where it is printed, and what of it is our reading."""
    sign: int = 0
    """Of the mean."""

    def __post_init__(self) -> None:
        if self.mean is not None:
            object.__setattr__(self, "sign", (self.mean > 0) - (self.mean < 0))


@dataclass(frozen=True)
class PaperRow:
    """One row of a table: where rules are compared, and what the paper calls it."""

    labels: tuple[str, ...]
    task: str
    agent: str
    condition: str


Key = tuple[PaperRow, str]
"""A place and a rule."""


@dataclass(frozen=True)
class PaperTable:
    """A table's layout and numbers."""

    name: str
    title: str
    head: tuple[str, ...]
    """Names of the label columns."""
    places: tuple[PaperRow, ...]
    rules: tuple[str, ...]
    returns: Mapping[Key, Published] = field(default_factory=dict)
    differences: Mapping[Key, Published] = field(default_factory=dict)
    """Of a rule less `passive`."""
    auc: Mapping[PaperRow, float] = field(default_factory=dict)
    remarks: Mapping[Key, str] = field(default_factory=dict)
    """Remarks of the paper's text on a cell."""

    def rules_at(self, place: PaperRow) -> tuple[str, ...]:
        """The rules that the paper has a number for."""
        keys = (*self.returns, *self.differences)
        known = {rule for row, rule in keys if row == place}
        return tuple(rule for rule in self.rules if rule in known)

    def difference(self, place: PaperRow, rule: str) -> Published | None:
        """As printed, or else that of the printed means, which then has no s.e.

        The mean of paired differences is the difference of the means.
        """
        if (place, rule) in self.differences:
            return self.differences[place, rule]
        one, other = (self.returns.get((place, name)) for name in (rule, PASSIVE))
        if one is None or other is None or one.mean is None or other.mean is None:
            return None
        return Published(one.mean - other.mean, None, f"{self.name}, of its means")


def _row(
    table: str, place: PaperRow, **numbers: tuple[float, float]
) -> dict[Key, Published]:
    return {(place, rule): Published(*one, table) for rule, one in numbers.items()}


_GAIN = PaperRow(("Gain reduction",), WALKER, DREAMER, "gain")
_DAMAGE = PaperRow(("Actuator damage",), WALKER, DREAMER, "damage")
_RECURRING = PaperRow(("Recurring",), WALKER, DREAMER, "recurring")
_NONE = PaperRow(("No change",), WALKER, DREAMER, "none")
_I, _II, _III = "Table I", "Table II", "Table III"
_A, _B, _C = "Section VI-A", "Section VI-B", "Section VI-C"

TABLE1 = PaperTable(
    name=_I,
    title="Walker return after the shift and age-staleness AUC",
    head=("Change",),
    places=(_GAIN, _DAMAGE, _RECURRING, _NONE),
    rules=("passive", "recency", "graded", "wmar"),
    returns={
        **_row(
            _I, _GAIN,
            passive=(177, 21), recency=(323, 30), graded=(163, 13), wmar=(387, 27),
        ),
        **_row(
            _I, _DAMAGE,
            passive=(232, 40), recency=(404, 34), graded=(246, 48), wmar=(418, 28),
        ),
        **_row(
            _I, _RECURRING,
            passive=(481, 17), recency=(290, 19), graded=(464, 11), wmar=(484, 24),
        ),
        **_row(
            _I, _NONE,
            passive=(936, 3), recency=(735, 27), graded=(936, 4), wmar=(816, 22),
        ),
    },
    differences={
        **_row(_A, _GAIN, recency=(146, 38)),
        **_row(_A, _DAMAGE, recency=(172, 42)),
        **_row(_A, _RECURRING, recency=(-191, 17)),
        **_row(_A, _NONE, recency=(-201, 25)),
    },
    auc={_GAIN: 1.00, _DAMAGE: 1.00, _RECURRING: 0.54},
)  # fmt: skip

TABLE2 = PaperTable(
    name=_II,
    title="Walker replay controls, separately trained checkpoints",
    head=("Change",),
    places=(_GAIN, _RECURRING),
    rules=("passive", "recency", "reservoir", "reset"),
    returns={
        **_row(
            _II, _GAIN,
            passive=(220, 21), recency=(288, 22), reservoir=(128, 14), reset=(425, 66),
        ),
        **_row(
            _II, _RECURRING,
            passive=(487, 19), recency=(287, 12), reservoir=(249, 14), reset=(312, 38),
        ),
    },
    differences={
        **_row(_B, _GAIN, recency=(68, 26)),
        **_row(_C, _RECURRING, reset=(-175, 32)),
    },
    remarks={(_RECURRING, "reset"): "less than Passive in all five seeds"},
)  # fmt: skip

_CHEETAH_DAMAGE = PaperRow(("Cheetah", "Damage"), CHEETAH, DREAMER, "damage")
_CHEETAH_RECURRING = PaperRow(("Cheetah", "Recurring"), CHEETAH, DREAMER, "recurring")
_TDMPC_DAMAGE = PaperRow(("TD-MPC2", "Damage"), WALKER, TDMPC, "damage")
_TDMPC_RECURRING = PaperRow(("TD-MPC2", "Recurring"), WALKER, TDMPC, "recurring")
_RWRL_DAMPING = PaperRow(("RWRL", "Recurring"), WALKER, DREAMER, "damping")
_RWRL_FRICTION = PaperRow(("RWRL", "Friction"), WALKER, DREAMER, "friction")

TABLE3 = PaperTable(
    name=_III,
    title="Replay comparisons in additional settings",
    head=("Setting", "Change"),
    places=(
        _CHEETAH_DAMAGE,
        _CHEETAH_RECURRING,
        _TDMPC_DAMAGE,
        _TDMPC_RECURRING,
        _RWRL_DAMPING,
        _RWRL_FRICTION,
    ),
    rules=("recency", "wmar"),
    differences={
        **_row(_III, _CHEETAH_DAMAGE, recency=(184, 35), wmar=(111, 39)),
        **_row(_III, _CHEETAH_RECURRING, recency=(-126, 12), wmar=(-42, 22)),
        **_row(_III, _TDMPC_DAMAGE, recency=(8, 15)),
        **_row(_III, _TDMPC_RECURRING, recency=(-123, 13)),
        **_row(_III, _RWRL_DAMPING, recency=(-222, 32)),
        **_row(_III, _RWRL_FRICTION, recency=(94, 58)),
    },
    remarks={
        (_TDMPC_DAMAGE, PASSIVE): "a return near 800, where DreamerV3 has 232",
        (_TDMPC_DAMAGE, "recency"): "more than Passive in three of five seeds",
        (_RWRL_DAMPING, "recency"): "less than Passive in all five seeds",
        (_RWRL_FRICTION, "recency"): "a bootstrap interval that holds 0",
    },
)

TABLES: Mapping[str, PaperTable] = {
    "table1": TABLE1,
    "table2": TABLE2,
    "table3": TABLE3,
}
"""By the name of the study that makes them."""

SWEEP: Mapping[tuple[str, str], Published] = {
    ("recurring", "A"): Published(-191, 17, _A),
    ("gain", "A"): Published(146, 38, _A),
    ("gain", "B"): Published(68, 26, _B),
    ("gain:g=1.0", "A"): Published(None, None, _B, sign=-1),
    ("gain:g=0.9", "A"): Published(None, None, _B, sign=-1),
    ("gain:g=0.7", "A"): Published(None, None, _B, sign=-1),
    ("gain:g=0.6", "B"): Published(-154, 36, _B),
}
"""Recency (10,000 transitions) less Passive, by condition and set of trunks."""

SWEEP_AUC: Mapping[str, float] = {"recurring": 0.54, "gain": 1.00}
"""Table I."""

RECURRENCE_TEXT = (
    "The paper (Section VI-B) sweeps periods that it does not name: the AUC falls from "
    "1.00 to 0.53 while the advantage moves from +146 to -287, and is -19 ± 14 at an "
    "AUC of 0.87. On its evaluation grid periods of 10k, 20k, 40k, 60k and 80k frames "
    "have AUCs of 0.44, 0.54, 0.55, 0.58 and 0.78, so 0.53 and 0.87 belong to others."
)
WINDOW_TEXT = (
    "The paper (Section VI-B): a larger window reduces Recency's loss at every sampled "
    "period."
)

FAILING_AUC = (0.72, 0.47)
"""Estimated AUC of the two wrong decisions at g = 0.5, Section VII-B."""

ESTIMATED_MAGNITUDE: Mapping[str, float] = {"gain": 0.43, "gain:g=0.6": 0.35}
"""Mean m_hat, Section VI-B."""
AGREEMENT: Mapping[str | None, tuple[int, int]] = {"gain": (3, 5), None: (19, 24)}
"""Right decisions of histories, Section VI-D; None: all of them."""
LOCATED = (5, 5)
"""Permanent changes at g = 0.5 that were found, each one episode late, Section VI-D."""
LOCATION_ERROR = 1
"""Episodes."""
