"""The recurrence as kernels of a GPU compute it, interpreted, beside plain scans."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import assert_close

from fallow.agents.dreamer.gpu import launch
from fallow.agents.dreamer.posterior_scan import posterior_scan
from fallow.agents.dreamer.recurrence import Inputs, Recurrence, State
from fallow.agents.shared.layers import Norm

pytestmark = pytest.mark.slow  # run by `make test-slow`, on a card by `make test-gpu`

N_BRANCHES, N_STEPS, N_ROWS = 2, 5, 6
SHAPE = (2, 16)
HIDDEN, DETER, STOCH = 16, 32, 32


def example(dtype: str) -> tuple[Recurrence, State, Inputs]:
    """Random arrays with a leading axis of branches; rows begin at several steps."""
    random = np.random.default_rng(0)

    def normal(*shape: int, dtype: str = dtype) -> jax.Array:
        return jnp.asarray(random.normal(size=(N_BRANCHES, *shape)), dtype)

    def norm(width: int) -> Norm:
        empty = Norm(width, 1e-3)
        moved = [normal(width, dtype="float32") for _ in range(2)]
        return jax.tree.unflatten(jax.tree.structure(empty), moved)

    is_first = random.random((N_BRANCHES, N_STEPS, N_ROWS)) < 0.3
    is_first[0, 0], is_first[1, 0], is_first[:, -1, 0] = True, False, True
    net = Recurrence(
        normal(STOCH, HIDDEN) / 4,
        normal(HIDDEN + DETER, 3 * DETER) / 6,
        normal(DETER, HIDDEN) / 4,
        normal(HIDDEN, STOCH) / 4,
        norm(HIDDEN),
        norm(3 * DETER),
        norm(HIDDEN),
        normal(STOCH, dtype="float32"),
        State(normal(DETER, dtype="float32"), normal(STOCH)),
    )
    state = State(normal(N_ROWS, DETER, dtype="float32"), normal(N_ROWS, STOCH))
    inputs = Inputs(
        normal(N_STEPS, N_ROWS, HIDDEN),
        normal(N_STEPS, N_ROWS, HIDDEN),
        jnp.asarray(is_first),
        jnp.asarray(random.random((*is_first.shape, SHAPE[0])), "float32"),
    )
    return net, state, inputs


def gradients_and_outcome(net: Recurrence, state: State, inputs: Inputs):
    """Of a loss that weighs every number of every state differently; one branch."""

    def loss(net, state, from_action, from_embed):
        given = inputs._replace(from_action=from_action, from_embed=from_embed)
        outcome = posterior_scan(SHAPE, 1, net, state, given)
        terms = [
            (jnp.cos(jnp.arange(x.size)) * x.astype(jnp.float32).ravel()).sum()
            for x in jax.tree.leaves(outcome)
        ]
        return sum(terms), outcome

    gradients = jax.grad(loss, argnums=(0, 1, 2, 3), has_aux=True)
    return gradients(net, state, inputs.from_action, inputs.from_embed)


def use_kernels(monkeypatch, used: bool = True) -> None:
    monkeypatch.setattr(launch, "available", lambda: used)


def in_float32(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float32), tree)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.02)]
)
def test_kernels_follow_as_the_scan_does(monkeypatch, dtype, tolerance) -> None:
    given = example(dtype)
    use_kernels(monkeypatch, False)  # on a GPU they are used by default
    plain = in_float32(jax.vmap(gradients_and_outcome)(*given))
    use_kernels(monkeypatch)
    fused = in_float32(jax.vmap(gradients_and_outcome)(*given))
    np.testing.assert_array_equal(plain[1][0].stoch, fused[1][0].stoch)
    assert all(np.abs(x).max() > 0 for x in jax.tree.leaves(plain))
    assert_close(fused, plain, tolerance)


def loops(jaxpr) -> list[collections.Counter[str]]:
    """What the steps of every scan are made of; kernels are not looked into."""
    found = []
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "scan":
            inner = [step.primitive.name for step in equation.params["jaxpr"].eqns]
            found.append(collections.Counter(inner))
        elif name != "pallas_call":
            for leaf in jax.tree.leaves(equation.params):
                if hasattr(leaf, "eqns"):
                    found += loops(leaf)
    return found


def test_a_step_is_four_products_and_four_kernels(monkeypatch) -> None:
    """Nothing is copied out of the arrays of all steps, nor into them."""
    use_kernels(monkeypatch)
    made = jax.make_jaxpr(jax.vmap(gradients_and_outcome))(*example("bfloat16"))
    forward, back = loops(made.jaxpr)
    for step in (forward, back):
        assert step["dot_general"] == step["pallas_call"] == 4
        assert not {"dynamic_slice", "dynamic_update_slice", "gather"} & set(step)
