"""Progress and status in a terminal."""
