"""TD-MPC2's mathematics against hand-computed numbers and laws."""

import dataclasses
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import assert_close
from known_weights import n_parameters

from fallow.agents import AGENTS
from fallow.agents.shared.layers import Norm, computing_in
from fallow.agents.tdmpc import cost, layers, losses, plan, train
from fallow.agents.tdmpc.agent import TdMpc
from fallow.agents.tdmpc.batches import transitions
from fallow.agents.tdmpc.config import PRESETS, Config
from fallow.agents.tdmpc.networks import Policy
from fallow.core.errors import FallowError

N_COLUMNS, N_ACTUATORS = 5, 2
SMALL = Config(
    n_latent=16,
    encoder_width=8,
    width=16,
    n_values=3,
    batch=8,
    n_iterations=2,
    n_samples=16,
    n_elites=4,
    n_proposals=3,
    rate=3e-3,
)
AGENT = TdMpc("small", SMALL, N_COLUMNS, N_ACTUATORS)
update = jax.jit(AGENT.update)


def rows_of(seed: int) -> dict[str, np.ndarray]:
    """A batch as the replay samples it; some sequences begin with an episode."""
    random = np.random.default_rng(seed)
    shape = (SMALL.batch, SMALL.horizon + 1)
    is_first = np.zeros(shape, bool)
    is_first[:, 0] = True
    return {
        "observation": random.normal(size=(*shape, N_COLUMNS)).astype(np.float32),
        "action": random.uniform(-1, 1, (*shape, N_ACTUATORS)).astype(np.float32),
        "reward": random.random(shape).astype(np.float32),
        "is_first": is_first,
    }


@pytest.fixture(scope="module")
def fresh() -> train.Learner:
    return jax.jit(AGENT.init)(jax.random.key(0))


@pytest.fixture(scope="module")
def learned(fresh) -> train.Learner:
    """After a few updates, so that no network is at its start."""
    state = fresh
    for k in range(5):
        state, _ = update(state, rows_of(k), jax.random.key(k))
    return state


# -------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("preset", "n_columns", "count"),
    [
        ("paper", 24, 4_960_618),  # walker
        ("paper", 17, 4_958_826),  # cheetah
        ("lean", 24, 1_214_651),
        ("lean", 17, 1_212_859),
    ],
)
def test_parameter_counts(preset: str, n_columns: int, count: int) -> None:
    key = jax.random.key(0)
    state = jax.eval_shape(lambda: train.init(PRESETS[preset], key, n_columns, 6))
    assert n_parameters(state.model) + n_parameters(state.actor) == count
    assert n_parameters(state.targets) == n_parameters(state.model.values)


@pytest.mark.parametrize(
    ("preset", "an_update", "a_plan"), [("paper", 30.1, 35.8), ("lean", 8.67, 13.16)]
)
def test_operations(preset: str, an_update: float, a_plan: float) -> None:
    """As measured in the reference, 10^9 each; `paper` with two values of the five."""
    sizes = (PRESETS[preset], 24, 6)
    assert cost.update_flops(*sizes) / 1e9 == pytest.approx(an_update, rel=2e-3)
    assert cost.plan_flops(*sizes) / 1e9 == pytest.approx(a_plan, rel=2e-3)


def test_schedule_of_the_paper() -> None:
    kind = AGENTS["tdmpc"]
    agent = kind.build("paper", kind.presets["paper"], 24, 6)
    schedule = agent.schedule
    assert (schedule.n_worlds, schedule.batch, schedule.length) == (1, 256, 4)
    assert schedule.updates_per_step == Fraction(1)
    assert (schedule.prefill_steps, schedule.pretrain_updates) == (2500, 2500)
    assert schedule.within_episodes


def test_more_iterations_for_many_actuators() -> None:
    assert [plan.n_iterations(Config(), n) for n in (6, 19, 20)] == [6, 6, 8]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_latent": 20}, "multiple of 8"),
        ({"n_values": 1}, "n_values of 1"),
        ({"n_elites": 513}, "n_elites of 513"),
        ({"n_proposals": 512}, "n_proposals of 512"),
        ({"n_proposals": -1}, "n_proposals is -1"),
        ({"n_elites": 0}, "n_elites is 0"),
    ],
)
def test_wrong_sizes_are_refused(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(FallowError, match=says):
        Config(**wrong)


# -------------------------------------------------------------------- layers


def test_simnorm_sums_to_one_in_groups_of_eight() -> None:
    x = 5 * jax.random.normal(jax.random.key(0), (3, 4, 24))
    y = np.asarray(layers.simnorm(x))
    assert (y >= 0).all()
    np.testing.assert_allclose(y.reshape(3, 4, 3, 8).sum(-1), 1, rtol=1e-5)
    by_hand = np.exp(x[0, 0, 8:16]) / np.exp(x[0, 0, 8:16]).sum()
    np.testing.assert_allclose(y[0, 0, 8:16], by_hand, rtol=1e-5)


def test_mish_and_its_gradient() -> None:
    x = jnp.array([-80.0, -8.0, -1.0, 0.0, 0.5, 3.0, 19.0, 21.0, 500.0])
    np.testing.assert_allclose(layers.mish(x), jax.nn.mish(x), rtol=1e-5, atol=1e-7)
    slope, expected = (
        jax.vmap(jax.grad(function))(x) for function in (layers.mish, jax.nn.mish)
    )
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-6)
    assert layers.mish(jnp.array(1.0)) == pytest.approx(math.tanh(math.log1p(math.e)))


def test_a_norm_by_hand() -> None:
    x = jnp.array([1.0, 3.0])
    expected = np.array([-1, 1]) / math.sqrt(1 + 1e-5)
    np.testing.assert_allclose(Norm(2, 1e-5)(x), expected, rtol=1e-6)


def test_dropout_leaves_out_one_in_a_hundred() -> None:
    config = dataclasses.replace(SMALL, batch=64, width=32)
    noise = jax.jit(lambda key: train.sample_noise(config, key, 2))(jax.random.key(0))
    assert noise.kept.shape == (3, 3, 64, 32) and noise.scoring.shape == (2, 4, 64, 32)
    kept = np.concatenate([np.ravel(noise.kept), np.ravel(noise.scoring)])
    error = math.sqrt(0.01 * 0.99 / len(kept))
    assert abs((~kept).mean() - 0.01) < 4 * error
    x = layers.dropped(jnp.array([2.0, 3.0]), jnp.array([True, False]))
    np.testing.assert_allclose(x, [2 / 0.99, 0], rtol=1e-6)


def test_dropout_is_in_the_values_each_its_own(learned) -> None:
    batch = transitions(rows_of(9))
    aimed = losses.Aim(jnp.zeros((3, 8, 16)), batch.reward)
    errors = jax.jit(losses.model_errors)
    every = np.ones((3, 3, 8, 16), bool)
    less = every.copy()
    less[1, 2, 5, 3] = False
    one, _ = errors(learned.model, batch, aimed, every)
    other, _ = errors(learned.model, batch, aimed, less)
    np.testing.assert_array_equal(one.reward, other.reward)
    np.testing.assert_array_equal(one.consistency, other.consistency)
    assert np.argwhere(one.value != other.value).tolist() == [[1, 2, 5]]


def test_new_networks(fresh) -> None:
    model = fresh.model
    assert not np.asarray(model.reward.out.weight).any()
    assert not np.asarray(model.values.networks.out.weight).any()
    big = layers.Linear(jax.random.key(1), 300, 300)
    assert float(big.weight.std()) == pytest.approx(0.02, rel=0.02)
    first = np.asarray(model.values.networks.blocks[0].linear.weight)
    assert (first[0] != first[1]).all()  # independent of each other
    assert_close(fresh.targets, model.values, 0)


def test_products_in_another_type_keep_parameters_and_results_float32(fresh) -> None:
    cast = computing_in(fresh.model, "bfloat16")
    assert cast.values.networks.blocks[0].linear.weight.dtype == jnp.bfloat16
    assert cast.values.networks.blocks[0].linear.bias.dtype == jnp.float32
    x = jax.random.normal(jax.random.key(0), (4, N_COLUMNS))
    assert cast.encoder(x).dtype == jnp.float32
    np.testing.assert_allclose(cast.encoder(x), fresh.model.encoder(x), atol=0.02)


# -------------------------------------------------------------------- batches


def test_rows_become_transitions() -> None:
    """Row t holds what led to it: action 10 t and reward 100 t."""
    t = np.arange(4.0)
    rows = {
        "observation": np.stack([t, t + 50])[..., None],
        "action": np.stack([10 * t, 10 * t])[..., None],
        "reward": np.stack([100 * t, 100 * t]),
        "is_first": np.array([[True, False, False, False], [True, False, True, False]]),
    }
    steps = transitions(rows)
    np.testing.assert_array_equal(steps.observation[:, 0, 0], [0, 1, 2, 3])
    np.testing.assert_array_equal(steps.observation[:, 1, 0], [50, 51, 52, 53])
    np.testing.assert_array_equal(steps.action[:, 0, 0], [10, 20, 30])
    np.testing.assert_array_equal(steps.reward[:, 0], [100, 200, 300])
    np.testing.assert_array_equal(steps.is_real[:, 1], [True, False, True])


# -------------------------------------------------------------------- losses


def test_the_model_s_loss_by_hand() -> None:
    errors = losses.Errors(
        consistency=jnp.array([[1.0, 3.0], [4.0, 0.0]]),  # means 2, 2
        reward=jnp.array([[1.0, 1.0], [6.0, 2.0]]),  # means 1, 4
        value=jnp.array([[[2.0, 2.0], [0.0, 0.0]], [[4.0, 4.0], [8.0, 8.0]]]),
    )
    means = errors.means()
    assert means.consistency == pytest.approx((2 + 0.5 * 2) / 2)
    assert means.reward == pytest.approx((1 + 0.5 * 4) / 2)
    assert means.value == pytest.approx((2 + 4 + 0.5 * 8) / 4)
    assert errors.total() == pytest.approx(20 * 1.5 + 0.1 * 1.5 + 0.1 * 2.5)


def test_targets_by_hand(learned) -> None:
    """The smaller of two sure values, 1 less than e² and e, at any latent."""

    def sure(place: int) -> jax.Array:
        return jnp.full(101, -1e9).at[place].set(0.0)

    def pair(latent: jax.Array, action: jax.Array) -> jax.Array:
        return jnp.stack([jnp.broadcast_to(sure(k), (3, 8, 101)) for k in (60, 55)])

    batch = transitions(rows_of(3))
    normal = jnp.zeros(batch.action.shape)
    aimed = losses.aim(learned.model, learned.actor, pair, batch, normal)
    expected = batch.reward + 0.99 * math.expm1(1.0)
    np.testing.assert_allclose(aimed.value, expected, rtol=1e-4)
    latent = learned.model.encoder(batch.observation[1:])
    np.testing.assert_allclose(aimed.latent, latent, rtol=1e-6)


def test_losses_at_initialisation(fresh) -> None:
    _, metrics = update(fresh, rows_of(0), jax.random.key(0))
    weights = (1 + 0.5 + 0.25) / 3
    assert metrics["model/reward"] == pytest.approx(weights * math.log(101), rel=1e-4)
    assert metrics["model/value"] == pytest.approx(weights * math.log(101), rel=1e-4)
    assert metrics["model/target"] == pytest.approx(
        rows_of(0)["reward"][:, 1:].mean(), rel=1e-4
    )


def test_policy_by_hand() -> None:
    policy = Policy.of(jnp.array([0.3, -1.0, 0.0, 100.0]))
    np.testing.assert_allclose(policy.log_std, [-4, 2], rtol=1e-6)
    normal = jnp.array([1.0, 0.5])
    np.testing.assert_allclose(
        policy.sample(normal),
        [math.tanh(0.3 + math.exp(-4)), math.tanh(-1 + 0.5 * math.exp(2))],
        rtol=1e-5,
    )
    density = -0.5 * (1 + 0.25) - (-4 + 2) - math.log(2 * math.pi)
    assert policy.log_density(normal) == pytest.approx(density, rel=1e-5)
    assert policy.scaled_entropy(normal) == pytest.approx(-2 * density, rel=1e-5)
    squash = sum(math.log(1 - float(a) ** 2 + 1e-6) for a in policy.sample(normal))
    assert policy.entropy(normal) == pytest.approx(squash - density, rel=1e-4)


def test_the_policy_s_loss_by_hand(learned) -> None:
    """Two sure values give their mean; the scale stays 1 as they do not spread."""

    def pair(latent: jax.Array, action: jax.Array, kept: None) -> jax.Array:
        sure = [jnp.full(101, -1e9).at[k].set(0.0) for k in (60, 55)]
        shape = (*latent.shape[:-1], 101)
        return jnp.stack([jnp.broadcast_to(one, shape) for one in sure])

    path = jax.random.uniform(jax.random.key(0), (4, 8, 16))
    noise = losses.Noise(jnp.zeros((4, 8, 2)), None)
    loss, evaluation = losses.actor_loss(learned.actor, pair, jnp.ones(()), path, noise)
    value = (math.expm1(2.0) + math.expm1(1.0)) / 2
    bonus = learned.actor(path).scaled_entropy(noise.normal).mean(-1)
    by_hand = -sum(0.5**t * (1e-4 * float(bonus[t]) + value) for t in range(4)) / 4
    assert loss == pytest.approx(by_hand, rel=1e-4)
    assert evaluation.scale == 1


def test_the_scale_by_hand() -> None:
    scale = losses.rescaled(jnp.array(2.0), jnp.arange(101.0))
    assert scale == pytest.approx(0.99 * 2 + 0.01 * 90, rel=1e-5)
    assert losses.rescaled(jnp.array(1.0), jnp.ones(7)) == pytest.approx(1)


# -------------------------------------------------------------------- an update


def test_an_update_s_first_step(fresh) -> None:
    """Adam's first step is the learning rate, 0.3 of it in the encoder."""
    rows = rows_of(0)
    new, metrics = update(fresh, rows, jax.random.key(0))

    def most(part: str) -> float:
        pairs = zip(
            jax.tree.leaves(getattr(new.model, part)),
            jax.tree.leaves(getattr(fresh.model, part)),
            strict=True,
        )
        return max(float(jnp.abs(a - b).max()) for a, b in pairs)

    assert most("encoder") == pytest.approx(0.3 * SMALL.rate, rel=0.01)
    for part in ("dynamics", "reward", "values"):
        assert most(part) == pytest.approx(SMALL.rate, rel=0.01)
    expected = jax.tree.map(
        lambda value, old: 0.01 * value + 0.99 * old, new.model.values, fresh.targets
    )
    assert_close(new.targets, expected, 1e-6)
    # values begin at zero: the policy was evaluated by those after the model's step
    assert metrics["actor/value"] != 0


def test_the_model_learns_a_batch_by_heart(fresh) -> None:
    state, rows, history = fresh, rows_of(0), []
    for k in range(60):
        state, metrics = update(state, rows, jax.random.key(k))
        history.append(float(metrics["model/reward"]))
    assert history[-1] < 0.7 * history[0]
    assert all(np.isfinite(float(v)) for v in metrics.values())


@pytest.mark.slow
def test_two_branches_together_equal_each_alone(fresh, learned) -> None:
    keys = jax.random.split(jax.random.key(5))
    rows = [rows_of(1), rows_of(2)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), fresh, learned)
    both = {name: np.stack([one[name] for one in rows]) for name in rows[0]}
    together, metrics = jax.jit(jax.vmap(AGENT.update))(stacked, both, keys)
    for branch, state in enumerate((fresh, learned)):
        alone, its_metrics = update(state, rows[branch], keys[branch])
        # a gradient near 0 makes Adam's first steps sensitive to rounding
        mine = [leaf[branch] for leaf in jax.tree.leaves(together)]
        assert_close(mine, alone, 2e-3)
        for name, value in its_metrics.items():
            assert metrics[name][branch] == pytest.approx(float(value), rel=1e-3)


def test_pairs_are_sampled_equally_often() -> None:
    pairs = np.asarray(train.pairs_of(jax.random.key(0), 4000, 5))
    assert pairs.min() == 0 and pairs.max() == 4
    assert (pairs[:, 0] != pairs[:, 1]).all()
    _, counts = np.unique(pairs, axis=0, return_counts=True)
    assert len(counts) == 20
    assert abs(counts - 200).max() < 4 * math.sqrt(200)


# -------------------------------------------------------------------- errors


def test_errors_do_not_count_seams(learned) -> None:
    rows = rows_of(4)
    errors = jax.jit(AGENT.errors)
    before = np.asarray(errors(learned, rows))
    assert before.shape == (SMALL.batch,) and (before >= 0).all()
    seam = rows["is_first"].copy()
    seam[:, 2] = True
    changed = {name: values.copy() for name, values in rows.items()}
    changed["action"][:, 2], changed["reward"][:, 2] = 0.9, 1e4
    one = errors(learned, rows | {"is_first": seam})
    other = errors(learned, changed | {"is_first": seam})
    np.testing.assert_array_equal(one, other)
    assert (np.asarray(errors(learned, changed)) != before).all()


def test_in_bfloat16_only_products_that_a_norm_follows_are_rounded() -> None:
    layer = computing_in(layers.Linear(jax.random.key(0), 64, 101), "bfloat16")
    x = jax.random.normal(jax.random.key(1), (8, 64))
    exact = x.astype(jnp.bfloat16).astype(jnp.float32) @ layer.weight.astype("float32")
    np.testing.assert_allclose(layer(x), exact, rtol=1e-4, atol=1e-6)
    rounded = layer(x, rounded=True)
    np.testing.assert_array_equal(rounded, rounded.astype(jnp.bfloat16))
    assert rounded.dtype == jnp.float32
    assert (layer(x) != rounded).mean() > 0.9
    assert PRESETS["lean"].compute == "bfloat16"
