"""A scan whose weight gradients are computed once, after it.

Differentiating a scan adds every step's weight gradient to a running sum: for a
recurrent network with few rows that reads and writes all weights at every step. With
y_t = x_t W, the gradient is sum_t x_t^T dy_t, one product over all steps at the end.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fallow.agents.dreamer.layers import product, saving_products, weight_gradient
from fallow.agents.dreamer.ops import stack_steps

Weights = dict[str, jax.Array]
Products = Callable[[str, jax.Array], jax.Array]
"""`products(name, x)` is x times the weight of that name."""


class Given(NamedTuple):
    """The inputs of every step of a scan."""

    weights: Weights
    """Matrices; each is used once a step, through `products`."""
    small: Any = ()
    """Other parameters, whose gradients are summed in the scan."""
    fixed: Any = ()
    """Inputs without gradient."""


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
    """Like `jax.lax.scan` of `step`; with all steps unrolled a list comes back."""

    def body(carry: Any, x: Any) -> tuple[Any, Any]:
        def products(name: str, x: jax.Array) -> jax.Array:
            return product(x, given.weights[name])

        return step(products, given.small, given.fixed, carry, x)

    return _over(body, unroll, carry, _apart(xs) if _is_all(unroll, xs) else xs)


def _over(
    body: Callable[[Any, Any], tuple[Any, Any]], unroll: int, carry: Any, xs: Any
) -> tuple[Any, Any]:
    """`jax.lax.scan`; over a list, all steps written out, and a list comes back.

    Mapped over branches, a scan leaves arrays of (steps, branches, …), which have to be
    turned round before anything is done with all steps at once; a list does not.
    """
    if not isinstance(xs, list):
        return jax.lax.scan(body, carry, xs, unroll=unroll)
    ys = []
    for x in xs:
        carry, y = body(carry, x)
        ys.append(y)
    return carry, ys


def _is_all(unroll: int, xs: Any) -> bool:
    """Whether all steps are to be unrolled."""
    return unroll >= _n_steps(xs)


def _n_steps(xs: Any) -> int:
    return len(jax.tree.leaves(xs)[0])


def _apart(xs: Any) -> list[Any]:
    """Arrays of all steps as a list, one a step."""
    return [jax.tree.map(lambda x, t=t: x[t], xs) for t in range(_n_steps(xs))]


def _together(each: Any) -> Any:
    """The inverse; what is not a list is together already."""
    return jax.tree.map(stack_steps, *each) if isinstance(each, list) else each


def _forward(
    step: Step, unroll: int, given: Given, carry: Any, xs: Any
) -> tuple[tuple[Any, Any], Any]:
    def products(name: str, x: jax.Array) -> jax.Array:
        shapes[name] = (*x.shape[:-1], given.weights[name].shape[-1])
        return product(x, given.weights[name])

    shapes: dict[str, tuple[int, ...]] = {}
    first = jax.tree.map(lambda x: x[0], xs)
    jax.eval_shape(partial(step, products), given.small, given.fixed, carry, first)
    taps: Any = {
        name: jnp.zeros((_n_steps(xs), *shape), given.weights[name].dtype)
        for name, shape in shapes.items()
    }
    if _is_all(unroll, xs):
        taps = _apart(taps)

    def run(small: Any, carry: Any, xs: Any, taps: Any) -> tuple[Any, Any]:
        @partial(saving_products, prevent_cse=False)
        def body(carry: Any, x_taps: Any) -> tuple[Any, tuple[Any, Weights]]:
            tapped = _Tapped(given.weights, x_taps[1], {})
            carry, y = step(tapped.product, small, given.fixed, carry, x_taps[0])
            return carry, (y, tapped.inputs)

        if not isinstance(taps, list):
            carry, (ys, inputs) = _over(body, unroll, carry, (xs, taps))
        else:
            each = list(zip(_apart(xs), taps, strict=True))
            carry, pairs = _over(body, unroll, carry, each)
            ys, inputs = map(list, zip(*pairs, strict=True))
        return (carry, ys), inputs

    out, pull, inputs = jax.vjp(run, given.small, carry, xs, taps, has_aux=True)
    return out, (pull, inputs)


def _backward(step: Step, unroll: int, saved: Any, cotangent: Any) -> tuple[Any, ...]:
    pull, inputs = saved
    small, carry, xs, taps = pull(cotangent)
    inputs, taps = _together(inputs), _together(taps)
    weights = {name: weight_gradient(inputs[name], tap) for name, tap in taps.items()}
    return Given(weights, small, None), carry, xs


scan.defvjp(_forward, _backward)
