"""Who learns: one agent a folder, each written for one branch, and the fleet."""
