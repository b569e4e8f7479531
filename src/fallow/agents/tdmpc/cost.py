"""The cost of learning and planning: operations of the matrix products, and memory."""

from typing import NamedTuple

from fallow.agents.tdmpc.bins import BINS
from fallow.agents.tdmpc.config import Config
from fallow.agents.tdmpc.plan import n_iterations


class Macs(NamedTuple):
    """Multiply-adds of each network for one row."""

    encoder: int
    dynamics: int
    reward: int
    actor: int
    value: int
    """One of them."""


def macs(config: Config, n_columns: int, n_actuators: int) -> Macs:
    """Multiply-adds of each network for one row."""
    c = config
    inward = (c.n_latent + n_actuators) * c.width + c.width**2
    scalar = inward + c.width * BINS.n
    return Macs(
        encoder=n_columns * c.encoder_width + c.encoder_width * c.n_latent,
        dynamics=inward + c.width * c.n_latent,
        reward=scalar,
        actor=c.n_latent * c.width + c.width**2 + c.width * 2 * n_actuators,
        value=scalar,
    )


def update_flops(config: Config, n_columns: int, n_actuators: int) -> float:
    """Floating-point operations of an update; a multiply-add is 2.

    Targets: encoder, policy and two values. Model: forward and twice that backward.
    Policy: forward, and backward but for the latents, through two values.
    """
    m, c = macs(config, n_columns, n_actuators), config
    rows = c.batch * c.horizon
    targets = rows * (m.encoder + m.actor + 2 * m.value)
    rollout = m.dynamics + m.reward + c.n_values * m.value
    model = 3 * (c.batch * m.encoder + rows * rollout)
    actor = 3 * m.actor - c.n_latent * c.width
    policy = c.batch * (c.horizon + 1) * (actor + 2 * 2 * m.value)
    return 2.0 * (targets + model + policy)


def plan_flops(config: Config, n_columns: int, n_actuators: int) -> float:
    """Floating-point operations of planning one action in one world."""
    m, c = macs(config, n_columns, n_actuators), config
    sequence = c.horizon * (m.dynamics + m.reward) + m.actor + 2 * m.value
    proposal = c.horizon * m.actor + (c.horizon - 1) * m.dynamics
    iterations = n_iterations(config, n_actuators) * c.n_samples * sequence
    return 2.0 * (m.encoder + c.n_proposals * proposal + iterations)


def working_bytes(config: Config, n_actuators: int) -> int:
    """Memory of an update, or of a plan where that is more, estimated.

    Numbers kept for every row until the backward pass, about 4 bytes each.
    """
    c = config
    network = 2 * 4 * c.width + 4 * BINS.n
    row = (3 + c.n_values) * network + 6 * c.n_latent + 2 * c.encoder_width
    evaluation = c.batch * (c.horizon + 1) * 3 * network
    update = c.batch * c.horizon * row + evaluation
    noise = n_iterations(config, n_actuators) * c.horizon * n_actuators
    planned = c.n_samples * (3 * network + 4 * c.n_latent + 2 * noise)
    return 4 * max(update, planned)
