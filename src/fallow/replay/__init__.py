"""Replay: rules, the ledger that they read, and buffers."""

from fallow.replay.buffer import Buffer, Ticket
from fallow.replay.rules import RULES, Rule, register
from fallow.replay.storage import Field

__all__ = ["RULES", "Buffer", "Field", "Rule", "Ticket", "register"]
