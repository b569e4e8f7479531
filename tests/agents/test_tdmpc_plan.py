"""Planning: a known optimum, the laws of a refit, and the plan as a carry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fallow.agents.tdmpc import mppi
from fallow.agents.tdmpc.agent import TdMpc
from fallow.agents.tdmpc.config import Config

# ------------------------------------------------ a linear-quadratic problem

HORIZON, N_SAMPLES, N_ELITES, N_ITERATIONS = 3, 512, 64, 6
A = np.array([[1.0, 0.2], [0.0, 0.9]])
B = np.array([[0.0, 0.1], [0.5, 0.0]])
STATE_COST, ACTION_COST = np.diag([4.0, 2.0]), 0.5 * np.eye(2)


def returns(start: jax.Array, actions: jax.Array) -> jax.Array:
    """(N,) minus the cost of action sequences (H, N, 2), the last state included."""
    x = jnp.broadcast_to(start, (actions.shape[1], 2))
    total = jnp.zeros(len(x))
    for action in actions:
        cost = jnp.einsum("ni,ij,nj->n", action, ACTION_COST, action)
        x = x @ A.T + action @ B.T
        total -= cost + jnp.einsum("ni,ij,nj->n", x, STATE_COST, x)
    return total


def riccati(start: np.ndarray) -> float:
    """The best possible return, from the Riccati recursion."""
    p = STATE_COST
    for step in range(HORIZON):
        gain = np.linalg.solve(ACTION_COST + B.T @ p @ B, B.T @ p @ A)
        closed = A - B @ gain
        p = closed.T @ p @ closed + gain.T @ ACTION_COST @ gain
        if step < HORIZON - 1:
            p = p + STATE_COST
    return -float(start @ p @ start)


@jax.jit
def searched(start: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return of the plan's mean, and of its best elite."""
    shape = (N_ITERATIONS, HORIZON, N_SAMPLES, 2)
    fit = mppi.search(
        lambda actions, _: returns(start, actions),
        mppi.start(jnp.zeros((HORIZON, 2)), N_ELITES),
        jnp.zeros((HORIZON, 0, 2)),
        jax.random.normal(key, shape),
        jnp.zeros(N_ITERATIONS),
    )
    return returns(start, fit.mean[:, None])[0], returns(start, fit.elites)[0]


@pytest.mark.parametrize("start", [(0.5, -0.4), (-0.3, 0.8), (0.8, 0.2)])
def test_a_plan_is_near_the_optimum(start: tuple[float, float]) -> None:
    best = riccati(np.array(start))
    keys = jax.random.split(jax.random.key(0), 10)
    of_mean, of_elite = jax.vmap(searched, (None, 0))(jnp.array(start), keys)
    idle = float(returns(jnp.array(start), jnp.zeros((HORIZON, 1, 2)))[0])
    assert idle < 1.2 * best  # there is something to gain
    assert (np.asarray(of_mean) <= best + 1e-4).all()
    assert (np.asarray(of_mean) > 1.03 * best).all()
    assert (np.asarray(of_elite) > 1.05 * best).all()


def test_a_plan_goes_on_from_the_one_before() -> None:
    previous = jnp.arange(6.0).reshape(3, 2)
    fit = mppi.start(previous, 4)
    np.testing.assert_array_equal(fit.mean, [[2, 3], [4, 5], [0, 0]])
    assert (np.asarray(fit.std) == 2).all()


def test_a_refit_by_hand() -> None:
    actions = jnp.array([[[0.0], [1.0], [0.5], [-1.0]]])  # (1, 4, 1)
    fit = mppi.refit(actions, jnp.array([1.0, 3.0, 0.0, -9.0]), 2)
    better = 1 / (1 + np.exp(-1.0))  # of 3 over 1, temperature 0.5
    np.testing.assert_allclose(fit.weights, [better, 1 - better], rtol=1e-5)
    np.testing.assert_allclose(fit.mean, [[better]], rtol=1e-5)
    spread = np.sqrt(better * (1 - better))
    np.testing.assert_allclose(fit.std, [[spread]], rtol=1e-5)
    assert fit.elites[0, :, 0].tolist() == [1.0, 0.0]


def test_candidates_are_in_range_and_proposals_come_first() -> None:
    fit = mppi.start(jnp.full((3, 2), 0.9), 4)
    proposals = jnp.full((3, 2, 2), 0.25)
    normal = jax.random.normal(jax.random.key(0), (3, 50, 2))
    tried = mppi.candidates(fit, proposals, normal)
    assert tried.shape == (3, 52, 2) and (np.abs(tried) <= 1).all()
    np.testing.assert_array_equal(tried[:, :2], proposals)


def test_no_number_counts_as_no_value() -> None:
    """A sequence whose value is not a number is worth 0."""
    fit = mppi.search(
        lambda actions, _: jnp.where(actions[0, :, 0] > 0, jnp.nan, -1.0),
        mppi.start(jnp.zeros((3, 1)), 2),
        jnp.zeros((3, 0, 1)),
        jax.random.normal(jax.random.key(0), (1, 3, 20, 1)),
        jnp.zeros(1),
    )
    assert np.isfinite(fit.mean).all() and (np.asarray(fit.elites[0]) > 0).all()


def test_elites_are_sampled_by_weight() -> None:
    weights = jnp.array([0.6, 0.3, 0.1])
    elites = jnp.array([[[0.0], [1.0], [2.0]]])
    fit = mppi.PlanDistribution(jnp.zeros((1, 1)), jnp.ones((1, 1)), elites, weights)
    gumbel = jax.random.gumbel(jax.random.key(0), (5000, 3))
    sampled = jax.vmap(lambda g: mppi.chosen(fit, g))(gumbel)[:, 0]
    counts = np.bincount(np.asarray(sampled).astype(int), minlength=3) / 5000
    np.testing.assert_allclose(counts, weights, atol=0.03)
    assert mppi.chosen(fit, jnp.zeros(3)) == 0


# ------------------------------------------------ acting

SMALL = Config(
    n_latent=16,
    encoder_width=8,
    width=16,
    n_values=3,
    n_iterations=2,
    n_samples=16,
    n_elites=4,
    n_proposals=3,
)
AGENT = TdMpc("small", SMALL, 5, 2)
act = jax.jit(AGENT.act, static_argnums=5)
W = 3


@pytest.fixture(scope="module")
def state():
    return jax.jit(AGENT.init)(jax.random.key(0))


OBSERVATION = np.random.default_rng(0).normal(size=(W, 5)).astype(np.float32)
GOING_ON = np.zeros(W, bool)


def test_acting_in_several_worlds(state) -> None:
    acted = act(
        state, AGENT.initial_carry(W), OBSERVATION, ~GOING_ON, jax.random.key(1), True
    )
    assert acted.action.shape == acted.mean.shape == acted.std.shape == (W, 2)
    assert acted.carry.shape == (W, 3, 2)
    assert (np.abs(acted.action) <= 1).all()
    assert (np.asarray(acted.std) >= 0.05).all() and (np.asarray(acted.std) <= 2).all()
    np.testing.assert_array_equal(acted.mean, acted.carry[:, 0])


def test_an_episode_begins_with_no_plan(state) -> None:
    key, carry = jax.random.key(1), jnp.full((W, 3, 2), 0.7)
    begun = act(state, carry, OBSERVATION, ~GOING_ON, key, True)
    empty = act(state, AGENT.initial_carry(W), OBSERVATION, GOING_ON, key, True)
    np.testing.assert_array_equal(begun.action, empty.action)
    went_on = act(state, carry, OBSERVATION, GOING_ON, key, True)
    assert (np.asarray(went_on.mean) != np.asarray(empty.mean)).any()


def test_without_exploring_an_elite_is_taken_as_it_is(state) -> None:
    """The plans are the same; only the noise of the action differs."""
    arguments = (
        state,
        AGENT.initial_carry(W),
        OBSERVATION,
        GOING_ON,
        jax.random.key(2),
    )
    noisy, plain = act(*arguments, True), act(*arguments, False)
    np.testing.assert_allclose(noisy.carry, plain.carry, rtol=1e-5, atol=1e-6)
    assert (np.abs(noisy.action - plain.action) > 1e-3).any()


def test_planning_under_a_map_over_branches(state) -> None:
    other = jax.jit(AGENT.init)(jax.random.key(7))
    stacked = jax.tree.map(lambda *x: jnp.stack(x), state, other)
    keys = jax.random.split(jax.random.key(3))
    carry = jnp.stack([AGENT.initial_carry(W)] * 2)
    observation, first = np.stack([OBSERVATION] * 2), np.stack([~GOING_ON] * 2)
    mapped = jax.jit(jax.vmap(lambda *a: AGENT.act(*a, True)))
    together = mapped(stacked, carry, observation, first, keys)
    for branch, learner in enumerate((state, other)):
        alone = act(learner, carry[branch], OBSERVATION, ~GOING_ON, keys[branch], True)
        np.testing.assert_allclose(
            together.action[branch], alone.action, rtol=1e-3, atol=1e-4
        )
