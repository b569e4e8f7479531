"""Which of its past experience should a learning robot keep after its body changed?

The names below are the public API; each is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fallow.core.errors import FallowError
    from fallow.diagnosis.pipeline import Diagnosis, diagnose
    from fallow.dynamics.gym import ShiftDynamics
    from fallow.dynamics.worlds import Worlds
    from fallow.logs.columns import Columns
    from fallow.logs.log import Log
    from fallow.logs.readers import read_log
    from fallow.replay.buffer import Buffer
    from fallow.replay.labeler import Tracked
    from fallow.replay.rules.rule import Rule
    from fallow.replay.storage import Field
    from fallow.study.engines import run_study
    from fallow.study.plan import Cell, Plan
    from fallow.tracking.tracker import Tracker

__version__ = "0.1.0"

_PUBLIC = {
    "Buffer": "fallow.replay.buffer",
    "Cell": "fallow.study.plan",
    "Columns": "fallow.logs.columns",
    "Diagnosis": "fallow.diagnosis.pipeline",
    "FallowError": "fallow.core.errors",
    "Field": "fallow.replay.storage",
    "Log": "fallow.logs.log",
    "Plan": "fallow.study.plan",
    "Rule": "fallow.replay.rules.rule",
    "ShiftDynamics": "fallow.dynamics.gym",
    "Tracked": "fallow.replay.labeler",
    "Tracker": "fallow.tracking.tracker",
    "Worlds": "fallow.dynamics.worlds",
    "diagnose": "fallow.diagnosis.pipeline",
    "read_log": "fallow.logs.readers",
    "run_study": "fallow.study.engines",
}
"""Public names and the modules that define them."""

__all__ = [
    "Buffer",
    "Cell",
    "Columns",
    "Diagnosis",
    "FallowError",
    "Field",
    "Log",
    "Plan",
    "Rule",
    "ShiftDynamics",
    "Tracked",
    "Tracker",
    "Worlds",
    "__version__",
    "diagnose",
    "read_log",
    "run_study",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fallow' has no attribute '{name}'")
    try:
        module = importlib.import_module(_PUBLIC[name])
    except ModuleNotFoundError as error:
        from fallow.core.extras import explained

        raise explained(error, f"fallow.{name}") from None
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
