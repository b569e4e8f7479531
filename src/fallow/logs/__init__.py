"""What was recorded: our own history format, and one reader a foreign format."""

from fallow.logs.history import Header, History, HistoryWriter, read_history
from fallow.logs.recorder import Recorder, header_of
from fallow.logs.resimulate import resimulate

__all__ = [
    "Header",
    "History",
    "HistoryWriter",
    "Recorder",
    "header_of",
    "read_history",
    "resimulate",
]
