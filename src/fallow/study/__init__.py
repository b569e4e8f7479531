"""The paired protocol: plans, trunks and branches, engines, and statistics."""
