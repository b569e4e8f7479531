"""DreamerV3 of January 2023, as the paper's reference has it."""
