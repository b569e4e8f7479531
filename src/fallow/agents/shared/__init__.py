"""What the agents have in common."""
