"""TD-MPC2: a model without a decoder, and planning at every step."""
