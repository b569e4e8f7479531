"""TD-MPC2: a model without a decoder, planned through at every step."""
