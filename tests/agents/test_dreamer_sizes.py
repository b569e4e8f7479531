"""Updates and acts at a preset's own widths, in its own type, as a GPU makes them.

With `make test` kernels are interpreted, for a few rows; on a GPU (`make test-gpu`)
they are compiled, with all rows, and run as often as it takes until a program is
replayed as one graph.
"""

import dataclasses
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from small_dreamer import by_sequence, moved, random_batch

from fallow.agents import compiling
from fallow.agents.compiling import GPU_OPTIONS
from fallow.agents.dreamer import losses, ops, train
from fallow.agents.dreamer.agent import Dreamer
from fallow.agents.dreamer.config import PRESETS, Config
from fallow.agents.dreamer.gpu import launch

pytestmark = pytest.mark.slow  # run by `make test-slow`, on a card by `make test-gpu`

ON_GPU = launch.on_gpu()
N_BRANCHES = 5 if ON_GPU else 1
N_TIMES = 6 if ON_GPU else 1
"""Calls of one program with the same numbers."""
FEW = {"batch": 2, "length": 2, "n_starts": 4, "horizon": 3}
N_COLUMNS, N_ACTUATORS = 24, 6
NEEDS_GPU = pytest.mark.skipif(not ON_GPU, reason="needs a GPU; others are held here")


def config_of(preset: str) -> Config:
    return dataclasses.replace(PRESETS[preset], **({} if ON_GPU else FEW))


def learners(config: Config) -> train.Learner:
    """One a branch."""

    def one(key: jax.Array) -> train.Learner:
        learner = moved(train.init(config, key, N_COLUMNS, N_ACTUATORS))
        # the state before the first is the likeliest one: without doubt, here
        first = jnp.arange(config.n_stoch) % config.n_classes == 0
        bias = learner.model.rssm.prior_out.bias
        return eqx.tree_at(
            lambda learner: learner.model.rssm.prior_out.bias, learner, bias + 3 * first
        )

    return jax.jit(jax.vmap(one))(branch_keys())


def branch_keys() -> jax.Array:
    return jax.vmap(jax.random.key)(jnp.arange(N_BRANCHES))


def batches(config: Config) -> losses.Batch:
    """One a branch, as replay hands them over."""
    each = [random_batch(config, N_COLUMNS, N_ACTUATORS, s) for s in range(N_BRANCHES)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(by_sequence, each))


def gradients(
    config: Config, learner: train.Learner, n_times: int = 1
) -> list[dict[str, np.ndarray]]:
    """Of all parameters of all branches, as they go into Adam's moments; each time.

    And the range of returns, which imagination alone has.
    """
    options = GPU_OPTIONS if ON_GPU else None
    update = jax.jit(jax.vmap(partial(train.update, config)), compiler_options=options)
    given = learner, batches(config), branch_keys()
    each = []
    for _ in range(n_times):
        state, _ = update(*given)
        opt_state = state.model_opt_state, state.actor_opt_state, state.critic_opt_state
        means = [
            *(optax.tree.get(part, "mu") for part in opt_state),
            state.return_range,
        ]
        leaves, _ = jax.tree_util.tree_flatten_with_path(means)
        each.append({jax.tree_util.keystr(k): np.asarray(x) for k, x in leaves})
    return each


def settled(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Noise that samples the first class or the last, whatever the logits are."""
    return jnp.where(jax.random.bernoulli(key, 0.5, shape), 1 - 1e-7, 0.0)


@pytest.mark.parametrize("preset", ["lean", pytest.param("paper", marks=NEEDS_GPU)])
def test_gradients_are_those_of_float32(monkeypatch, preset) -> None:
    """But for rounding; samples that rounding could turn are settled beforehand."""
    config = config_of(preset)
    learner = learners(config)
    monkeypatch.setattr(jax.random, "uniform", settled)
    with monkeypatch.context() as plainly, jax.default_matmul_precision("highest"):
        plainly.setattr(launch, "available", lambda: False)
        (exact,) = gradients(dataclasses.replace(config, compute="float32"), learner)
    monkeypatch.setattr(launch, "available", lambda: True)
    monkeypatch.setattr(compiling, "on_processor", lambda: False)
    first, *others = gradients(config, learner, N_TIMES)
    assert len(exact) > 60
    for name, found in first.items():
        off = np.linalg.norm(found - exact[name]) / np.linalg.norm(exact[name])
        assert off < 0.03, f"{name} is off by {off:.1%}"
        for again in others:
            np.testing.assert_array_equal(again[name], found, name)


@pytest.mark.parametrize("preset", ["lean", "paper"])
def test_samples_are_the_plain_ones(monkeypatch, preset) -> None:
    config = config_of(preset)
    random = np.random.default_rng(0)
    n = config.batch * config.length
    shape = (config.n_categoricals, config.n_classes)
    product = 3 * random.normal(size=(N_BRANCHES, n, config.n_stoch))
    bias = jnp.asarray(random.normal(size=config.n_stoch), jnp.float32)
    uniform = jnp.asarray(random.random((N_BRANCHES, n, shape[0])), jnp.float32)

    def sampled() -> np.ndarray:
        def sample(product: jax.Array, uniform: jax.Array) -> jax.Array:
            return ops.sample_latent(ops.Logits(product, bias, shape), uniform)

        given = jnp.asarray(product, config.compute)
        return np.asarray(jax.jit(jax.vmap(sample))(given, uniform), np.float32)

    monkeypatch.setattr(launch, "available", lambda: False)
    plain = sampled()
    monkeypatch.setattr(launch, "available", lambda: True)
    one_hot = sampled()
    assert (one_hot.reshape(*one_hot.shape[:-1], *shape).sum(-1) == 1).all()
    # a number that lies on the border of two classes may fall on either side
    assert (one_hot != plain).mean() < 1e-5


@pytest.mark.parametrize("n_worlds", [pytest.param(4, marks=NEEDS_GPU), 10])
@pytest.mark.parametrize("preset", ["lean", pytest.param("paper", marks=NEEDS_GPU)])
def test_acts_are_those_of_float32(monkeypatch, preset, n_worlds) -> None:
    """In a life's worlds and an evaluation's, step by step; an episode ends midway."""
    config = PRESETS[preset]
    learner = learners(config)
    random = np.random.default_rng(0)
    seen = random.normal(size=(4, N_BRANCHES, n_worlds, N_COLUMNS)).astype(np.float32)
    begins = np.zeros(seen.shape[:3], bool)
    begins[0] = begins[2, :, 1] = True
    monkeypatch.setattr(jax.random, "uniform", settled)

    def acted(config: Config) -> np.ndarray:
        agent = Dreamer(preset, config, N_COLUMNS, N_ACTUATORS)
        options = GPU_OPTIONS if ON_GPU else None
        act = jax.jit(
            jax.vmap(partial(agent.act, explore=True)), compiler_options=options
        )
        initial = agent.initial_carry(n_worlds)
        carry = jax.tree.map(lambda x: jnp.stack([x] * N_BRANCHES), initial)
        found = []
        for observation, is_first in zip(seen, begins, strict=True):
            acted = act(learner, carry, observation, is_first, branch_keys())
            carry = acted.carry
            found.append(np.concatenate([acted.action, acted.mean, acted.std], -1))
        return np.stack(found)

    with monkeypatch.context() as plainly, jax.default_matmul_precision("highest"):
        plainly.setattr(launch, "available", lambda: False)
        exact = acted(dataclasses.replace(config, compute="float32"))
    monkeypatch.setattr(launch, "available", lambda: True)
    monkeypatch.setattr(compiling, "on_processor", lambda: False)
    np.testing.assert_allclose(acted(config), exact, atol=0.03)
    assert np.ptp(exact, axis=0).mean() > 0.1  # what is seen matters
