"""The bins of rewards and values."""

from fallow.agents.shared.bins import Bins

BINS = Bins(n=255, limit=20.0)
