"""Logs: Fallow's history format, and one reader for each other format."""

from fallow.logs.columns import Columns
from fallow.logs.data import from_data
from fallow.logs.history import Header, History, HistoryWriter, read_history
from fallow.logs.log import Log
from fallow.logs.readers import logs_in, read_log
from fallow.logs.recorder import Recorder, header_of
from fallow.logs.resimulate import resimulate

__all__ = [
    "Columns",
    "Header",
    "History",
    "HistoryWriter",
    "Log",
    "Recorder",
    "from_data",
    "header_of",
    "logs_in",
    "read_history",
    "read_log",
    "resimulate",
]
