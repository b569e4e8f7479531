"""Scalars as distributions over bins, by hand."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from fallow.agents.dreamer.bins import BINS as DREAMER
from fallow.agents.shared.bins import Bins, symexp, symlog
from fallow.agents.tdmpc.bins import BINS as TDMPC

both = pytest.mark.parametrize("bins", [DREAMER, TDMPC], ids=["dreamer", "tdmpc"])


def test_the_references_bins() -> None:
    assert (DREAMER.n, DREAMER.limit, TDMPC.n, TDMPC.limit) == (255, 20.0, 101, 10.0)
    assert pytest.approx(0.2) == TDMPC.width


@both
def test_two_hot_by_hand(bins: Bins) -> None:
    places, zero = np.asarray(bins.places()), bins.n // 2
    assert places[zero] == 0
    np.testing.assert_allclose(places[[0, -1]], [-bins.limit, bins.limit], rtol=1e-6)
    x = symexp(jnp.array([0.0, 0.25, 5.0, -1.5]) * bins.width)
    target = np.asarray(bins.two_hot(x))
    np.testing.assert_allclose(target.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(target[0, zero], 1, atol=1e-5)
    np.testing.assert_allclose(target[1, zero : zero + 2], [0.75, 0.25], atol=1e-4)
    np.testing.assert_allclose(target[2, zero + 5], 1, atol=1e-4)
    np.testing.assert_allclose(target[3, zero - 2 : zero], [0.5, 0.5], atol=1e-4)


@both
def test_beyond_the_ends_all_weight_is_on_the_end(bins: Bins) -> None:
    """The bin after the last is the first one; its share at the top is 0."""
    target = np.asarray(bins.two_hot(jnp.array([1e12, -1e12])))
    assert target[0, -1] == 1 and (target[0, :-1] == 0).all()
    assert target[1, 0] == 1 and (target[1, 1:] == 0).all()
    top = np.asarray(TDMPC.two_hot(jnp.array(math.expm1(10.0))))
    assert top[-1] == pytest.approx(1, abs=1e-4) and top[0] == 0


@both
def test_losses_and_estimates_by_hand(bins: Bins) -> None:
    flat, zero = jnp.zeros(bins.n), bins.n // 2
    loss = bins.cross_entropy(flat, jnp.array(3.7))
    assert loss == pytest.approx(math.log(bins.n))
    logits = flat.at[zero].set(math.log(3.0))  # 3 against n - 1 of 1
    loss = bins.cross_entropy(logits, jnp.array(0.0))
    assert loss == pytest.approx(-math.log(3 / (bins.n + 2)), rel=1e-5)
    sure = jnp.full(bins.n, -1e9).at[zero + 10].set(0.0)
    expected = math.expm1(10 * bins.width)
    assert bins.estimate(sure) == pytest.approx(expected, rel=1e-5)


def test_symlog_and_its_inverse() -> None:
    x = jnp.array([-1000.0, -1.0, 0.0, 0.5, 1e4])
    np.testing.assert_allclose(symexp(symlog(x)), x, rtol=1e-4)
    assert symlog(jnp.array(math.e - 1)) == pytest.approx(1)
