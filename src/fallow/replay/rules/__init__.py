"""Retention rules: one rule, one small file, listed in this order."""

# isort: off
from fallow.replay.rules.rule import RULES, Rule, register
from fallow.replay.rules.passive import Passive
from fallow.replay.rules.recency import Recency
from fallow.replay.rules.graded import Graded
from fallow.replay.rules.wmar import Wmar
from fallow.replay.rules.reservoir import Reservoir
from fallow.replay.rules.reset import Reset
from fallow.replay.rules.curious import Curious
from fallow.replay.rules.matched import Matched
from fallow.replay.rules.adaptive import Adaptive
# isort: on

__all__ = [
    "RULES",
    "Adaptive",
    "Curious",
    "Graded",
    "Matched",
    "Passive",
    "Recency",
    "Reservoir",
    "Reset",
    "Rule",
    "Wmar",
    "register",
]
