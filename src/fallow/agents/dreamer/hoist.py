"""A scan whose weight gradients are taken once, after it.

Differentiating a scan adds every step's weight gradient to a running sum: for a
recurrent network with few rows that reads and writes all weights at every step. With
y_t = x_t W, the gradient is sum_t x_t^T dy_t, one product over all steps at the end.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents.dreamer.layers import product

Weights = dict[str, jax.Array]
Products = Callable[[str, jax.Array], jax.Array]
"""`products(name, x)` is x times the weight of that name."""
Step = Callable[[Products, Any, Any, Any], tuple[Any, Any]]
"""`step(products, rest, carry, x) -> carry, y`, each weight used once."""


class _Tapped(NamedTuple):
    """Products that remember their input and add a tap, zero, to their output."""

    weights: Weights
    taps: Weights | None
    inputs: Weights

    def __call__(self, name: str, x: jax.Array) -> jax.Array:
        self.inputs[name] = x.astype(self.weights[name].dtype)
        out = product(x, self.weights[name])
        return out if self.taps is None else out + self.taps[name]


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def scan(
    step: Step, unroll: int, weights: Weights, rest: Any, carry: Any, xs: Any
) -> tuple[Any, Any]:
    """Like `jax.lax.scan` of `step`, which must close over no arrays."""
    carry, (ys, _) = _run(step, unroll, weights, rest, carry, xs, None)
    return carry, ys


def _run(
    step: Step,
    unroll: int,
    weights: Weights,
    rest: Any,
    carry: Any,
    xs: Any,
    taps: Weights | None,
) -> tuple[Any, tuple[Any, Weights]]:
    def body(carry: Any, x_taps: Any) -> tuple[Any, tuple[Any, Weights]]:
        products = _Tapped(weights, x_taps[1], {})
        carry, y = step(products, rest, carry, x_taps[0])
        return carry, (y, products.inputs)

    return jax.lax.scan(body, carry, (xs, taps), unroll=unroll)


def _forward(
    step: Step, unroll: int, weights: Weights, rest: Any, carry: Any, xs: Any
) -> tuple[tuple[Any, Any], Any]:
    _, (_, shapes) = jax.eval_shape(
        partial(_run, step, unroll), weights, rest, carry, xs, None
    )
    taps = {
        name: jnp.zeros((*x.shape[:-1], weights[name].shape[-1]), x.dtype)
        for name, x in shapes.items()
    }

    def run(rest: Any, carry: Any, xs: Any, taps: Weights) -> tuple[Any, Any]:
        carry, (ys, inputs) = _run(step, unroll, weights, rest, carry, xs, taps)
        return (carry, ys), inputs

    out, pull, inputs = jax.vjp(run, rest, carry, xs, taps, has_aux=True)
    return out, (pull, inputs)


def _backward(step: Step, unroll: int, saved: Any, cotangent: Any) -> tuple[Any, ...]:
    pull, inputs = saved
    rest, carry, xs, taps = pull(cotangent)
    weights = {
        name: jnp.einsum("...i,...o->io", inputs[name], tap)
        for name, tap in taps.items()
    }
    return weights, rest, carry, xs


scan.defvjp(_forward, _backward)
