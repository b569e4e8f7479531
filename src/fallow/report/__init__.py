"""What people look at: for now, the demo's picture."""
