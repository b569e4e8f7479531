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

from fallow.agents.dreamer.layers import product, saving_products

Weights = dict[str, jax.Array]
Products = Callable[[str, jax.Array], jax.Array]
"""`products(name, x)` is x times the weight of that name."""


class Given(NamedTuple):
    """What every step of a scan reads."""

    weights: Weights
    """Matrices; each is used once a step, through `products`."""
    small: Any = ()
    """Other parameters, whose gradients are summed in the scan."""
    fixed: Any = ()
    """What gets no gradient."""


Step = Callable[[Products, Any, Any, Any, Any], tuple[Any, Any]]
"""`step(products, small, fixed, carry, x) -> carry, y`, closing over no arrays."""


@jax.custom_vjp
def _tapped(x: jax.Array, weight: jax.Array, tap: jax.Array) -> jax.Array:
    """X times a weight; the gradient of the outcome becomes the gradient of `tap`."""
    return product(x, weight)


def _tapped_forward(x: jax.Array, weight: jax.Array, tap: jax.Array) -> Any:
    return product(x, weight), weight


def _tapped_backward(weight: jax.Array, d_out: jax.Array) -> tuple[Any, ...]:
    return d_out @ weight.T, None, d_out


_tapped.defvjp(_tapped_forward, _tapped_backward)


class _Tapped(NamedTuple):
    """Products that remember their input."""

    weights: Weights
    taps: Weights
    inputs: Weights

    def product(self, name: str, x: jax.Array) -> jax.Array:
        self.inputs[name] = x = x.astype(self.weights[name].dtype)
        return _tapped(x, self.weights[name], self.taps[name])


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def scan(step: Step, unroll: int, given: Given, carry: Any, xs: Any) -> tuple[Any, Any]:
    """Like `jax.lax.scan` of `step`."""

    def body(carry: Any, x: Any) -> tuple[Any, Any]:
        def products(name: str, x: jax.Array) -> jax.Array:
            return product(x, given.weights[name])

        return step(products, given.small, given.fixed, carry, x)

    return _over(body, unroll, carry, xs)


def _run(
    step: Step, unroll: int, given: Given, carry: Any, xs: Any, taps: Weights
) -> tuple[Any, tuple[Any, Weights]]:
    @partial(saving_products, prevent_cse=False)
    def body(carry: Any, x_taps: Any) -> tuple[Any, tuple[Any, Weights]]:
        products = _Tapped(given.weights, x_taps[1], {})
        carry, y = step(products.product, given.small, given.fixed, carry, x_taps[0])
        return carry, (y, products.inputs)

    return _over(body, unroll, carry, (xs, taps))


def _over(
    body: Callable[[Any, Any], tuple[Any, Any]], unroll: int, carry: Any, xs: Any
) -> tuple[Any, Any]:
    """`jax.lax.scan`; all steps written out where `unroll` is their number.

    Mapped over branches, a scan leaves arrays of (steps, branches, …), which have to be
    turned round before anything is done with all steps at once; this does not.
    """
    n_steps = len(jax.tree.leaves(xs)[0])
    if unroll < n_steps:
        return jax.lax.scan(body, carry, xs, unroll=unroll)
    ys = []
    for t in range(n_steps):
        carry, y = body(carry, jax.tree.map(lambda x: x[t], xs))  # noqa: B023
        ys.append(y)
    return carry, jax.tree.map(lambda *own: stacked(*own), *ys)


def stacked(*parts: jax.Array) -> jax.Array:
    """Arrays (rows, …) as one of (steps, rows, …); a part may hold several steps.

    As `jnp.stack`, but rows are put after rows: given an axis of length one, a compiler
    makes it the slowest and has all turned round.
    """
    rows = parts[0].shape
    flat = [part.reshape(-1, *rows[1:]) for part in parts]
    return jnp.concatenate(flat).reshape(-1, *rows)


def _forward(
    step: Step, unroll: int, given: Given, carry: Any, xs: Any
) -> tuple[tuple[Any, Any], Any]:
    def products(name: str, x: jax.Array) -> jax.Array:
        shapes[name] = (*x.shape[:-1], given.weights[name].shape[-1])
        return product(x, given.weights[name])

    shapes: dict[str, tuple[int, ...]] = {}
    n_steps = len(jax.tree.leaves(xs)[0])
    first = jax.tree.map(lambda x: x[0], xs)
    jax.eval_shape(partial(step, products), given.small, given.fixed, carry, first)
    taps = {
        name: jnp.zeros((n_steps, *shape), given.weights[name].dtype)
        for name, shape in shapes.items()
    }

    def run(small: Any, carry: Any, xs: Any, taps: Weights) -> tuple[Any, Any]:
        own = given._replace(small=small)
        carry, (ys, inputs) = _run(step, unroll, own, carry, xs, taps)
        return (carry, ys), inputs

    out, pull, inputs = jax.vjp(run, given.small, carry, xs, taps, has_aux=True)
    return out, (pull, inputs)


def _backward(step: Step, unroll: int, saved: Any, cotangent: Any) -> tuple[Any, ...]:
    pull, inputs = saved
    small, carry, xs, taps = pull(cotangent)
    weights = {
        name: jnp.einsum("...i,...o->io", inputs[name], tap)
        for name, tap in taps.items()
    }
    return Given(weights, small, None), carry, xs


scan.defvjp(_forward, _backward)
