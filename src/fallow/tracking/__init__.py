"""Online tracking of the regime in force, from commands and driven velocities."""

from fallow.tracking.config import TrackerConfig
from fallow.tracking.regimes import KnownRegime
from fallow.tracking.saving import read_tracker, write_tracker
from fallow.tracking.tracker import Tracker
from fallow.tracking.update import TrackerUpdate

__all__ = [
    "KnownRegime",
    "Tracker",
    "TrackerConfig",
    "TrackerUpdate",
    "read_tracker",
    "write_tracker",
]
