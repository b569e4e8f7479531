"""The forms in which Dreamer is computed on an accelerator, beside the plain ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import assert_close
from small_dreamer import SMALL, fresh, moved, random_batch, uniform_of

from fallow.agents import compiling
from fallow.agents.dreamer import deferred_grads, losses, ops, posterior_scan, train
from fallow.agents.dreamer.gpu import launch

pytestmark = pytest.mark.slow  # run by `make test-slow`, on a card by `make test-gpu`


@pytest.fixture(scope="module")
def learner() -> train.Learner:
    return moved(fresh(0))


@pytest.fixture(scope="module")
def batch() -> losses.Batch:
    return random_batch()


def gradients_of_the_model(learner, batch) -> train.WorldModel:
    noise = uniform_of((SMALL.length, SMALL.batch, SMALL.n_categoricals))

    def loss(model):
        return losses.model_errors(model, batch, noise)[0].total().mean()

    return jax.jit(jax.grad(loss))(learner.model)


def automatic_scan(*arguments):
    """The same scan; the bias gets its gradient where it is added."""
    states, products = posterior_scan._forward_scan(*arguments)
    bias = arguments[2].bias
    return states, products.p4 + (bias - jax.lax.stop_gradient(bias))


def test_the_scan_by_hand_has_the_automatic_gradient(
    learner, batch, monkeypatch
) -> None:
    by_hand = gradients_of_the_model(learner, batch)
    # a kernel that writes in place has no automatic gradient
    monkeypatch.setattr(launch, "available", lambda: False)
    monkeypatch.setattr("fallow.agents.dreamer.rssm.posterior_scan", automatic_scan)
    automatic = gradients_of_the_model(learner, batch)
    assert_close(by_hand, automatic)
    assert np.abs(by_hand.rssm.initial).max() > 0


def gradients_of_the_actor(learner, batch) -> train.Actor:
    _, states = jax.jit(losses.model_errors)(learner.model, batch, None)
    start = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), states)
    shape = (SMALL.horizon - 1, SMALL.batch * SMALL.length)
    noise = losses.Noise(
        uniform_of((*shape, SMALL.n_categoricals)), 2 * uniform_of((*shape, 2)) - 1
    )

    def loss(actor):
        return_range = jnp.zeros(2)
        given = (learner.model, learner.critic, return_range, start, noise)
        return losses.actor_loss(actor, *given)[0]

    return jax.jit(jax.grad(loss))(learner.actor)


def test_computing_again_changes_no_gradient(learner, batch, monkeypatch) -> None:
    """As on an accelerator, where only products are kept."""
    kept = (
        gradients_of_the_model(learner, batch),
        gradients_of_the_actor(learner, batch),
    )
    monkeypatch.setattr(compiling, "on_processor", lambda: False)
    again = (
        gradients_of_the_model(learner, batch),
        gradients_of_the_actor(learner, batch),
    )
    assert_close(again, kept)


def plain_scan(step, unroll, given, carry, xs):
    def products(name, x):
        return x @ given.weights[name]

    fixed = jax.lax.stop_gradient(given.fixed)
    return jax.lax.scan(
        lambda carry, x: step(products, given.small, fixed, carry, x), carry, xs
    )


def test_deferred_gradients_are_the_automatic_ones(learner, batch, monkeypatch) -> None:
    deferred = gradients_of_the_actor(learner, batch)
    monkeypatch.setattr("fallow.agents.dreamer.losses.scan", plain_scan)
    assert_close(deferred, gradients_of_the_actor(learner, batch))


@pytest.mark.parametrize("unroll", [1, 2, 4])
def test_a_scan_without_gradient_is_the_same_scan(unroll: int) -> None:
    weights = {"w": jnp.eye(3) * 0.5}
    step = lambda products, small, fixed, carry, x: (  # noqa: E731
        products("w", carry) + x,
        carry.sum(),
    )
    xs = jnp.arange(12.0).reshape(4, 3)
    given = deferred_grads.Given(weights)
    carry, ys = deferred_grads.scan(step, unroll, given, jnp.zeros(3), xs)
    expected, ys_expected = plain_scan(step, 1, given, jnp.zeros(3), xs)
    np.testing.assert_array_equal(carry, expected)
    np.testing.assert_array_equal(np.array(ys), ys_expected)


@pytest.mark.parametrize("shape", [(8, 384), (3, 5), ()])
def test_steps_are_stacked_by_a_kernel_as_by_hand(monkeypatch, shape) -> None:
    monkeypatch.setattr(launch, "available", lambda: True)
    random = np.random.default_rng(0)
    parts = [jnp.asarray(random.normal(size=(2, *shape)), "float32") for _ in range(5)]
    one = [part[0] for part in parts]
    assert ops.fits("stack", *one) == (shape == (8, 384))
    by_kernel = jax.vmap(ops.stack_steps)(*parts)
    np.testing.assert_array_equal(by_kernel, jnp.stack(parts, 1))
    weight = jnp.asarray(random.normal(size=(5, *shape)), "float32")
    gradients = jax.grad(lambda x: (weight * ops.stack_steps(*x)).sum())(one)
    np.testing.assert_array_equal(np.array(gradients), weight)


def test_kernels_change_no_gradient(learner, batch, monkeypatch) -> None:
    """As on a GPU, where norms, gates and samples are kernels; here interpreted."""
    plain = (
        gradients_of_the_model(learner, batch),
        gradients_of_the_actor(learner, batch),
    )
    monkeypatch.setattr(launch, "available", lambda: True)
    monkeypatch.setattr(compiling, "on_processor", lambda: False)
    fused = (
        gradients_of_the_model(learner, batch),
        gradients_of_the_actor(learner, batch),
    )
    assert_close(fused, plain)


def test_kernels_change_no_update(learner, batch, monkeypatch) -> None:
    """Of all metrics of two updates in a row, as on a GPU and as here."""

    def metrics_of_two() -> list[dict]:
        update = jax.jit(lambda learner, key: train.update(SMALL, learner, batch, key))
        first, metrics = update(learner, jax.random.key(1))
        return [metrics, update(first, jax.random.key(2))[1]]

    plain = metrics_of_two()
    monkeypatch.setattr(launch, "available", lambda: True)
    monkeypatch.setattr(compiling, "on_processor", lambda: False)
    assert_close(metrics_of_two(), plain, 1e-4)
