"""The bins of rewards and values."""

from fallow.agents.shared.bins import Bins

BINS = Bins(n=101, limit=10.0)
