"""DreamerV3's mathematics against hand-computed numbers and automatic gradients."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import assert_close
from known_weights import n_parameters
from small_dreamer import SMALL, by_sequence, fresh, random_batch, uniform_of, updated

from fallow.agents.dreamer import (
    cost,
    latent,
    losses,
    ops,
    posterior_scan,
    train,
)
from fallow.agents.dreamer.config import Config
from fallow.agents.dreamer.networks import Policy
from fallow.agents.shared.optimizer import clipped


@pytest.fixture(scope="module")
def batch() -> losses.Batch:
    return random_batch()


# -------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("n_columns", "counts"),
    [
        (24, [16_469_784, 1_056_780, 1_181_439]),  # walker
        (17, [16_455_441, 1_056_780, 1_181_439]),  # cheetah
    ],
)
def test_parameter_counts_of_the_paper(n_columns: int, counts: list[int]) -> None:
    key = jax.random.key(0)
    state = jax.eval_shape(lambda: train.init(Config(), key, n_columns, 6))
    networks = (state.model, state.actor, state.critic)
    assert [n_parameters(network) for network in networks] == counts


def test_operations_of_the_paper() -> None:
    """Multiply-adds a row as counted in the reference, and what an update takes."""
    macs = cost.macs(Config(), 24, 6)
    assert macs.prior_step == 2_886_656
    assert macs.encoder + macs.decoder == 4_218_880 + 5_791_744
    assert (macs.reward, macs.continues, macs.actor) == (
        1_179_136,
        1_049_088,
        1_054_720,
    )
    # 738.2 without dead work, less the critic's forward pass, which is shared
    assert cost.update_flops(Config(), 24, 6) / 1e9 == pytest.approx(738.2 - 36, abs=9)


def test_schedule_of_the_paper() -> None:
    assert Config().updates_per_step == 2
    assert Config().prefill_steps == 625


# -------------------------------------------------------------------- latent


def test_divergence_by_hand() -> None:
    one, two = jnp.log(jnp.array([[0.8, 0.2]])), jnp.log(jnp.array([[0.5, 0.5]]))
    p = 0.99 * 0.8 + 0.005
    expected = p * math.log(p / 0.5) + (1 - p) * math.log((1 - p) / 0.5)
    assert latent.divergence(one, two) == pytest.approx(expected, rel=1e-5)
    assert latent.divergence(one, one) == 0


def test_samples_follow_the_mixed_probabilities() -> None:
    logits = jnp.tile(jnp.array([[3.0, 0.0, -2.0, 1.0]]), (20_000, 1, 1))
    sampled = np.asarray(latent.sample(logits, uniform_of((20_000, 1))))
    assert set(np.unique(sampled)) == {0.0, 1.0} and (sampled.sum(-1) == 1).all()
    p = np.asarray(latent.mixed(logits[0, 0]))
    error = np.sqrt(p * (1 - p) / len(sampled))
    assert (np.abs(sampled[:, 0].mean(0) - p) < 4 * error).all()


def test_a_sample_at_the_very_end_is_the_last_class() -> None:
    largest = np.nextafter(np.float32(1), np.float32(0))
    sampled = latent.sample(jnp.zeros((1, 32)), jnp.array([largest]))
    assert sampled[0].argmax() == 31 and sampled.sum() == 1


def test_gradients_go_straight_through() -> None:
    logits = jnp.array([[0.3, -0.7, 0.1]])
    along = jnp.array([[1.0, 2.0, -1.0]])

    def gradient(function) -> jax.Array:
        return jax.grad(lambda x: (function(x) * along).sum())(logits)

    sampled = gradient(lambda x: latent.sample(x, jnp.array([0.4])))
    np.testing.assert_allclose(sampled, gradient(latent.mixed), rtol=1e-5)
    np.testing.assert_allclose(
        gradient(latent.mode), gradient(latent.log_mixed), rtol=1e-5
    )


# -------------------------------------------------------------------- recurrence


def test_gates_by_hand() -> None:
    """The reset gate multiplies the candidate; the update gate leans to the old."""
    reset, candidate, update, old = 0.5, -0.8, 0.3, 0.9
    gates = ops.gates(jnp.array([reset, candidate, update]), jnp.array([old]))
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    share = sigmoid(update - 1)
    expected = share * math.tanh(sigmoid(reset) * candidate) + (1 - share) * old
    assert gates[0] == pytest.approx(expected, rel=1e-6)


# -------------------------------------------------------------------- behaviour


def test_lambda_returns_by_hand() -> None:
    reward = jnp.array([[9.0], [1.0], [2.0]])
    continues = jnp.array([[0.1], [0.5], [0.8]])
    value = jnp.array([[7.0], [3.0], [4.0]])
    last = 2 + 0.8 * 4
    first = 1 + 0.5 * (0.05 * 3 + 0.95 * last)
    returns = losses.lambda_returns(reward, continues, value)
    np.testing.assert_allclose(returns[:, 0], [first, last], rtol=1e-6)


def test_normaliser_by_hand() -> None:
    return_range, scale = losses.normalized(jnp.zeros(2), jnp.arange(101.0) * 10)
    np.testing.assert_allclose(return_range, [0.5, 9.5], rtol=1e-5)
    assert scale == pytest.approx(9.0, rel=1e-5)
    _, scale = losses.normalized(jnp.zeros(2), jnp.arange(101.0))
    assert scale == 1  # 0.9 is below the least scale


def test_policy_by_hand() -> None:
    policy = Policy.of(jnp.array([0.0, 2.0, -2.0, 0.0]))
    np.testing.assert_allclose(policy.mean, [0, math.tanh(2)], rtol=1e-6)
    np.testing.assert_allclose(
        policy.std, [0.9 * 0.5 + 0.1, 0.9 * 0.880797 + 0.1], rtol=1e-5
    )
    entropy = sum(0.5 * math.log(2 * math.pi * math.e * s**2) for s in policy.std)
    assert policy.entropy() == pytest.approx(entropy, rel=1e-5)
    action = policy.sample(jnp.array([0.5, 10.0]))
    np.testing.assert_allclose(action, [0.5 * 0.55, 1.0], rtol=1e-6)


def test_an_action_at_the_limit_keeps_a_scaled_gradient() -> None:
    def action(mean):
        return Policy(mean, jnp.ones(1)).sample(jnp.array([3.0]))[0]

    assert jax.grad(action)(jnp.array([1.0]))[0] == pytest.approx(1 / 4)


# -------------------------------------------------------------------- an update


@pytest.mark.slow
def test_losses_at_initialisation(batch) -> None:
    state = fresh(3)
    errors, states = jax.jit(losses.model_errors)(state.model, batch, None)
    np.testing.assert_allclose(errors.reward, math.log(255), rtol=1e-5)
    flat = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1])[None], states)
    features = jnp.tile(flat.feature, (3, 1, 1))
    ones = jnp.ones((2, features.shape[1]))
    imagined = losses.Imagined(features, 5 * ones, ones, jnp.zeros(2), jnp.zeros(()))
    loss = losses.critic_loss(state.critic, state.critic, imagined)
    assert loss == pytest.approx(2 * math.log(255), rel=1e-5)


@pytest.mark.slow
def test_initial_latents_are_nearly_uniform() -> None:
    config = dataclasses.replace(Config(), coder_layers=1)
    state = train.init(config, jax.random.key(0), 24, 6)
    deter = 0.3 * jax.random.normal(jax.random.key(1), (50, config.n_deter))
    p = latent.mixed(state.model.rssm.expected(deter)())
    entropy = -(p * jnp.log(p)).sum((-2, -1)).mean()
    assert 105 < entropy < 32 * math.log(32)


@pytest.mark.slow
def test_the_model_learns_a_batch_by_heart(batch) -> None:
    state, history = fresh(0), []
    for k in range(60):
        state, metrics = updated(state, by_sequence(batch), jax.random.key(k))
        history.append(float(metrics["model/decoder"] + metrics["model/reward"]))
    assert history[-1] < 0.6 * history[0]
    assert all(np.isfinite(float(v)) for v in metrics.values())


@pytest.mark.slow
def test_the_slow_critic_lags_by_one_update(batch) -> None:
    """It moves towards the critic before the critic's own step."""
    state, given = fresh(0), by_sequence(batch)
    once, _ = updated(state, given, jax.random.key(1))
    assert_close(once.slow_critic, state.critic, 1e-6)
    twice, _ = updated(once, given, jax.random.key(2))
    expected = jax.tree.map(
        lambda new, old: 0.02 * new + 0.98 * old, once.critic, once.slow_critic
    )
    assert_close(twice.slow_critic, expected, 1e-6)


def test_clipping_is_the_reference_s() -> None:
    gradients = {"a": jnp.array([3.0, 4.0])}
    scaled, _ = clipped(1.0).update(gradients, None)
    np.testing.assert_allclose(scaled["a"], [0.6, 0.8], rtol=1e-5)
    same, _ = clipped(10.0).update(gradients, None)
    np.testing.assert_array_equal(same["a"], gradients["a"])


def test_starts_are_spread_over_the_batch() -> None:
    config = dataclasses.replace(SMALL, n_starts=6)
    n = config.batch * config.length
    rows = jnp.arange(n, dtype=jnp.float32).reshape(config.length, config.batch, 1)
    chosen = train._chosen(config, posterior_scan.State(rows, rows), jax.random.key(5))
    assert (np.diff(np.asarray(chosen.deter)[:, 0]) == n / 6).all()
