"""Estimates and losses over bins as a GPU's kernels compute them, interpreted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import assert_close

from fallow.agents.dreamer import ops
from fallow.agents.dreamer.bins import BINS
from fallow.agents.dreamer.gpu import launch
from fallow.agents.dreamer.gpu.bins import N_PADDED
from fallow.agents.dreamer.heads import BinnedScalars
from fallow.agents.dreamer.layers import MLP
from fallow.agents.shared.layers import computing_in

pytestmark = pytest.mark.slow  # run by `make test-slow`, on a card by `make test-gpu`

N_BRANCHES, SHAPE, N_FEATURES = 2, (3, 8), 16


def example(dtype: str) -> tuple[MLP, jax.Array, list[jax.Array]]:
    """Heads of two branches whose logits are far from even, features, two targets."""
    keys = jax.random.split(jax.random.key(0), N_BRANCHES)
    heads = jax.vmap(lambda key: MLP(key, [N_FEATURES, 32], BINS.n, 30.0))(keys)
    random = np.random.default_rng(0)
    features = random.normal(size=(N_BRANCHES, *SHAPE, N_FEATURES))
    targets = 50 * random.normal(size=(2, N_BRANCHES, *SHAPE))
    targets[0, 0, 0, :4] = 0, 1e-4, 1e12, -1e12  # both ends, and the middle
    arrays = [jnp.asarray(array, "float32") for array in (features, *targets)]
    return computing_in(heads, dtype), arrays[0], arrays[1:]


def outcome_and_gradients(head: MLP, features: jax.Array, *targets: jax.Array):
    """Of a loss that weighs every row differently, for each of the three uses."""

    def loss(head: MLP, features: jax.Array):
        binned = BinnedScalars.of(head, features)
        each = {
            "estimate": binned.estimate(),
            "one": binned.cross_entropy(targets[0]),
            "two": binned.cross_entropy(*targets),
        }
        waves = {name: jnp.cos(jnp.arange(x.size)).reshape(x.shape) * x
                 for name, x in each.items()}  # fmt: skip
        return sum(x.sum() for x in waves.values()), each

    return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(head, features)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.02)]
)
def test_kernels_count_as_the_formulas_do(monkeypatch, dtype, tolerance) -> None:
    head, features, targets = example(dtype)
    monkeypatch.setattr(launch, "available", lambda: False)
    plain = jax.vmap(outcome_and_gradients)(head, features, *targets)
    monkeypatch.setattr(launch, "available", lambda: True)
    fused = jax.vmap(outcome_and_gradients)(head, features, *targets)
    each = plain[0][1]
    assert all(np.ptp(x) > 1 for x in jax.tree.leaves(each))
    assert_close(
        *(jax.tree.map(np.float32, form) for form in (fused, plain)), tolerance
    )


def test_they_are_the_formulas_of_the_bins(monkeypatch) -> None:
    monkeypatch.setattr(launch, "available", lambda: False)
    head, features, targets = example("float32")
    one = jax.tree.map(lambda x: x[0], head)
    logits, binned = one(features[0]), BinnedScalars.of(one, features[0])
    np.testing.assert_array_equal(binned.estimate(), BINS.estimate(logits))
    losses = [BINS.cross_entropy(logits, x[0]) for x in targets]
    both = binned.cross_entropy(targets[0][0], targets[1][0])
    np.testing.assert_allclose(both, losses[0] + losses[1], rtol=1e-6)


def test_the_bin_that_is_none_gets_nothing(monkeypatch) -> None:
    monkeypatch.setattr(launch, "available", lambda: True)
    head, features, targets = example("float32")
    one = jax.tree.map(lambda x: x[0], head)

    def loss(product: jax.Array) -> jax.Array:
        binned = padded._replace(product=product)
        return binned.estimate().sum() + binned.cross_entropy(targets[0][0]).sum()

    padded = BinnedScalars.of(one, features[0])
    assert padded.product.shape == (*SHAPE, N_PADDED)
    gradient = jax.grad(loss)(padded.product)
    assert np.abs(gradient[..., : BINS.n]).max() > 0
    assert not gradient[..., BINS.n :].any()


def test_a_kernel_is_left_out_by_its_name(monkeypatch) -> None:
    monkeypatch.setattr(launch, "available", lambda: True)
    monkeypatch.setenv("FALLOW_KERNELS", "off:bins,posterior")
    names = ("norm_silu", "bins", "posterior")
    assert [ops.fits(name, 64) for name in names] == [True, False, False]
