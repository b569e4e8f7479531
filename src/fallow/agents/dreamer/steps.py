"""The three nonlinear steps between the products, each with its gradient by hand.

On a GPU they are one kernel each (see `kernels`); elsewhere, and where widths are not
powers of two, they are the few lines of plain code here, differentiated automatically.
Products stay in their own type, deters and gradients of parameters are float32.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from fallow.agents.dreamer import kernels, latent, tiles
from fallow.agents.shared.layers import Norm

# ---------------------------------------------------------------- norm and SiLU


def activate(norm: Norm, x: jax.Array) -> jax.Array:
    """What follows a block's product (…, W), in its type: silu(norm(x))."""
    if tiles.fits(x.shape[-1]):
        return _fused_activate(norm, x)
    return jax.nn.silu(norm(x)).astype(x.dtype)


def activate_back(norm: Norm, x: jax.Array, d_y: jax.Array) -> tuple[Norm, jax.Array]:
    """Gradients of norm and x, from that of the outcome."""
    if not tiles.fits(x.shape[-1]):
        return jax.vjp(activate, norm, x)[1](d_y)
    d_scale, d_shift, d_x = kernels.norm_silu_back(
        norm.scale, norm.shift, _flat(x), _flat(d_y), norm.epsilon
    )
    return _norm_like(norm, d_scale, d_shift), d_x.reshape(x.shape)


@jax.custom_vjp
def _fused_activate(norm: Norm, x: jax.Array) -> jax.Array:
    y = kernels.norm_silu(norm.scale, norm.shift, _flat(x), norm.epsilon)
    return y.reshape(x.shape)


_fused_activate.defvjp(
    lambda norm, x: (_fused_activate(norm, x), (norm, x)),
    lambda saved, d_y: activate_back(saved[0], saved[1], d_y),
)


# ---------------------------------------------------------------- norm and gates


def recur(norm: Norm, x: jax.Array, deter: jax.Array) -> jax.Array:
    """From the joint product of input and deter (…, 3 D) to the next deter (…, D)."""
    if tiles.fits(deter.shape[-1]):
        return _fused_recur(norm, x, deter)
    return gates(norm(x), deter)


def gates(normed: jax.Array, deter: jax.Array) -> jax.Array:
    """The next deter (…, D) from what the norm gives, (…, 3 D).

    The reset gate multiplies the candidate after the product and the norm, unlike in
    the usual GRU.
    """
    reset, candidate, update = jnp.split(normed, 3, -1)
    candidate = jnp.tanh(jax.nn.sigmoid(reset) * candidate)
    update = jax.nn.sigmoid(update - 1)
    return update * candidate + (1 - update) * deter


def recur_back(
    norm: Norm, x: jax.Array, deter: jax.Array, d_new: jax.Array
) -> tuple[Norm, jax.Array, jax.Array]:
    """Gradients of norm, x and deter, from that of the next deter."""
    if not tiles.fits(deter.shape[-1]):
        return jax.vjp(recur, norm, x, deter)[1](d_new)
    d_scale, d_shift, d_x, d_deter = kernels.norm_gates_back(
        norm.scale, norm.shift, _flat(x), _flat(deter), _flat(d_new), norm.epsilon
    )
    d_norm = _norm_like(norm, d_scale, d_shift)
    return d_norm, d_x.reshape(x.shape), d_deter.reshape(deter.shape)


@jax.custom_vjp
def _fused_recur(norm: Norm, x: jax.Array, deter: jax.Array) -> jax.Array:
    new = kernels.norm_gates(
        norm.scale, norm.shift, _flat(x), _flat(deter), norm.epsilon
    )
    return new.reshape(deter.shape)


_fused_recur.defvjp(
    lambda norm, x, deter: (_fused_recur(norm, x, deter), (norm, x, deter)),
    lambda saved, d_new: recur_back(saved[0], saved[1], saved[2], d_new),
)


# ---------------------------------------------------------------- draws


class Logits(eqx.Module):
    """Logits of the latent as a product in its own type and a bias, not yet added."""

    product: jax.Array  # (…, C K)
    bias: jax.Array  # (C K,)
    shape: tuple[int, int] = eqx.field(static=True)

    def __call__(self) -> jax.Array:
        """(…, C, K) in float32."""
        logits = self.product.astype(jnp.float32) + self.bias
        return logits.reshape(*logits.shape[:-1], *self.shape)

    @property
    def fits(self) -> bool:
        """Whether a kernel can draw from them."""
        return tiles.fits(self.product.shape[-1], 16 * self.shape[1])


def draw(logits: Logits, uniform: jax.Array | None) -> jax.Array:
    """A flat one-hot latent (…, C K): a draw by `uniform` (…, C), or the mode."""
    if uniform is not None and logits.fits:
        return _fused_draw(logits, uniform)
    own = logits()
    one_hot = latent.mode(own) if uniform is None else latent.sample(own, uniform)
    return one_hot.reshape(logits.product.shape).astype(logits.product.dtype)


def draw_back(
    logits: Logits, uniform: jax.Array | None, d_drawn: jax.Array
) -> jax.Array:
    """Gradient of the logits (…, C K): of probabilities; for a mode, of their logs."""
    if uniform is None or not logits.fits:
        (d_logits,) = jax.vjp(lambda own: draw(own, uniform), logits)[1](d_drawn)
        return d_logits.product
    d_product = kernels.draw_back(
        _flat(logits.product), logits.bias, _flat(d_drawn), logits.shape[0]
    )
    return d_product.reshape(d_drawn.shape)


@jax.custom_vjp
def _fused_draw(logits: Logits, uniform: jax.Array) -> jax.Array:
    drawn = kernels.draw(_flat(logits.product), logits.bias, _flat(uniform))
    return drawn.reshape(logits.product.shape)


def _fused_draw_back(saved: Any, d_drawn: jax.Array) -> tuple[Logits, None]:
    logits, uniform = saved
    d_product = draw_back(logits, uniform, d_drawn)
    d_bias = _flat(d_product).astype(jnp.float32).sum(0)
    return eqx.tree_at(
        lambda own: (own.product, own.bias), logits, (d_product, d_bias)
    ), None


_fused_draw.defvjp(
    lambda logits, uniform: (_fused_draw(logits, uniform), (logits, uniform)),
    _fused_draw_back,
)


def _flat(x: jax.Array) -> jax.Array:
    return x.reshape(-1, x.shape[-1])


def _norm_like(norm: Norm, scale: jax.Array, shift: jax.Array) -> Norm:
    return eqx.tree_at(lambda own: (own.scale, own.shift), norm, (scale, shift))
