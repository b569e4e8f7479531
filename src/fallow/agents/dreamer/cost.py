"""The cost of an update: operations of its matrix products, and memory."""

from typing import NamedTuple

from fallow.agents.dreamer.bins import BINS
from fallow.agents.dreamer.config import Config


class Macs(NamedTuple):
    """Multiply-adds of each network for one row."""

    encoder: int
    prior_step: int
    posterior: int
    decoder: int
    reward: int
    continues: int
    actor: int
    critic: int


def macs(config: Config, n_columns: int, n_actuators: int) -> Macs:
    """Multiply-adds of each network for one row."""
    c, h = config, config.n_hidden
    coder = (c.coder_layers - 1) * c.coder_width**2
    head = c.n_feature * c.head_width + (c.head_layers - 1) * c.head_width**2
    inward = (c.n_stoch + n_actuators) * h
    gru = (h + c.n_deter) * 3 * c.n_deter
    logits = h * c.n_stoch
    return Macs(
        encoder=n_columns * c.coder_width + coder,
        prior_step=inward + gru + c.n_deter * h + logits,
        posterior=(c.n_deter + c.coder_width) * h + logits,
        decoder=c.n_feature * c.coder_width + coder + c.coder_width * n_columns,
        reward=head + c.head_width * BINS.n,
        continues=head + c.head_width,
        actor=head + c.head_width * 2 * n_actuators,
        critic=head + c.head_width * BINS.n,
    )


def update_flops(config: Config, n_columns: int, n_actuators: int) -> float:
    """Floating-point operations of an update without dead work; a multiply-add is 2.

    World model: forward and twice that backward. Behaviour: prior steps and the
    rollout's actor, the heads and the entropy's actor, forward and backward to the
    states, and the actor's own weights; the critic's weights; the slow critic.
    """
    m = macs(config, n_columns, n_actuators)
    model = m.encoder + m.prior_step + m.posterior + m.decoder + m.reward + m.continues
    rows = config.batch * config.length
    steps, states = config.horizon - 1, config.horizon
    forward = (
        steps * (m.prior_step + m.actor)
        + states * (m.reward + m.continues + m.critic)
        + steps * m.actor
        + steps * m.critic  # the slow one
    )
    backward = (
        steps * (m.prior_step + m.actor)
        + states * (m.reward + m.continues + m.critic)
        + steps * 2 * m.actor
        + steps * m.critic
    )
    return 2.0 * (3 * model * rows + (forward + backward) * config.n_starts)


def working_bytes(config: Config) -> int:
    """Memory for what the backward pass needs, estimated, and rather too much of it.

    Numbers kept for every row of the batch, and for every imagined state, in the type
    of the products. `benchmarks/fleet.py` shows it beside what was really used.
    """
    c = config
    latent = 6 * c.n_stoch + 8 * c.n_deter + 6 * c.n_hidden
    heads = 3 * c.head_layers * c.head_width
    model_row = latent + 6 * c.coder_layers * c.coder_width + 2 * heads + 4 * BINS.n
    imagined_row = latent + 4 * heads + 10 * BINS.n
    rows = c.batch * c.length
    n_bytes = 2 if c.compute == "bfloat16" else 4
    return n_bytes * (model_row * rows + imagined_row * c.n_starts * c.horizon)
