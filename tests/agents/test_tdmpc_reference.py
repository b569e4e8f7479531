"""The reference's own numbers on known inputs, through its own weight names."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from known_weights import DATA, known_weights, n_parameters

from fallow.agents.shared.bins import symexp, symlog
from fallow.agents.shared.layers import ema_update
from fallow.agents.tdmpc import layers, losses, mppi, plan, train
from fallow.agents.tdmpc.batches import Transitions
from fallow.agents.tdmpc.bins import BINS
from fallow.agents.tdmpc.reference import from_reference
from fallow.core.errors import FallowError

ZERO_AT_START = (
    "_reward.2.weight",
    "_Qs.params.2.weight",
    "_target_Qs_params.2.weight",
)
PAIR = jnp.array([0, 1])
N_ELITES = {"refit": 3, "plan": 4}


def scaled(name: str, s: np.ndarray) -> np.ndarray:
    if name.endswith("bias"):
        return 0.1 * s
    if name.endswith("ln.weight"):
        return 1 + 0.1 * s
    return (4 if name in ZERO_AT_START else 2) * s / np.sqrt(s.shape[-1])


@pytest.fixture(scope="module")
def known() -> dict[str, np.ndarray]:
    return known_weights("tdmpc_reference_names.txt", scaled)


@pytest.fixture(scope="module")
def given() -> dict[str, np.ndarray]:
    return dict(np.load(DATA / "tdmpc_reference.npz"))


@pytest.fixture(scope="module")
def computed(known, given) -> dict[str, np.ndarray]:
    """All arrays of the file, computed by our functions."""
    learner = from_reference(known)
    compute = jax.jit(
        lambda learner, given: (
            of_networks(learner, given)
            | of_losses(learner, given)
            | of_planner(learner, given)
            | of_functions(given)
        )
    )
    return compute(learner, given)


def batch_of(given: dict[str, np.ndarray]) -> Transitions:
    reward = given["reward"][..., 0]
    real = jnp.ones(reward.shape, bool)
    return Transitions(given["observation"], given["action"], reward, real)


def of_networks(learner: train.Learner, given) -> dict[str, jax.Array]:
    model, actor, batch = learner.model, learner.actor, batch_of(given)
    latent = model.encoder(batch.observation)
    still = jnp.zeros((*latent.shape[:-1], 6))
    policy = actor(latent)
    action = policy.sample(still)
    aimed = losses.aim(model, actor, learner.targets.picked(PAIR), batch, still[1:])
    _, path = losses.model_errors(model, batch, aimed, None)
    reward = model.reward_logits(path[:-1], batch.action)
    values = model.values(path[:-1], batch.action)
    targets = learner.targets(latent[1:], action[1:])
    return {
        "latent": latent,
        "rollout": path,
        "reward_logits": reward,
        "reward_estimate": BINS.estimate(reward)[..., None],
        "q_logits": values,
        "q_estimate": BINS.estimate(values)[..., None],
        "policy_mean": policy.mean,
        "policy_log_std": policy.log_std,
        "policy_action": action,
        "policy_entropy": policy.entropy(still)[..., None],
        "policy_scaled_entropy": policy.scaled_entropy(still)[..., None],
        "target_q_logits": targets,
        "target_q_estimate": BINS.estimate(targets)[..., None],
        "td_target": aimed.value[..., None],
    }


def norms(gradients: list[jax.Array]) -> jax.Array:
    return jnp.stack([jnp.sqrt(jnp.square(g).sum()) for g in gradients])


def named_leaves(*networks: layers.MLP) -> list[jax.Array]:
    """Weight, bias, scale, shift of every layer, in the order of the names."""
    found = []
    for network in networks:
        for layer in (*network.blocks, network.out):
            linear = getattr(layer, "linear", layer)
            found += [linear.weight, linear.bias]
            if isinstance(layer, layers.Block):
                found += [layer.norm.scale, layer.norm.shift]
    return found


def of_losses(learner: train.Learner, given) -> dict[str, jax.Array]:
    batch = batch_of(given)
    model, actor, targets = learner.model, learner.actor, learner.targets
    still = jnp.zeros((4, 3, 6))
    aimed = losses.aim(model, actor, targets.picked(PAIR), batch, still[1:])

    def model_loss(model):
        errors, path = losses.model_errors(model, batch, aimed, None)
        return errors.total(), (errors, path)

    def actor_loss(actor):
        pair, noise = model.values.picked(PAIR), losses.Noise(still, None)
        return losses.actor_loss(actor, pair, learner.scale, path, noise)

    grad = jax.value_and_grad(model_loss, has_aux=True)
    (total, (errors, path)), gradients = grad(model)
    parts = errors.means()
    of_actor = jax.value_and_grad(actor_loss, has_aux=True)
    (pi_loss, evaluation), pi_gradients = of_actor(actor)
    ordered = named_leaves(
        gradients.encoder,
        gradients.dynamics,
        gradients.reward,
        gradients.values.networks,
    )
    moved = ema_update(train.TARGET_RATE, model.values, targets)
    return {
        "consistency_per_step": errors.consistency.mean(-1),
        "reward_ce": errors.reward[..., None],
        "value_ce": errors.value[..., None],
        "consistency_loss": parts.consistency,
        "reward_loss": parts.reward,
        "value_loss": parts.value,
        "total_loss": total,
        "grad_norm": optax.tree.norm(gradients),
        "grad_norms_model": norms(ordered),
        "pi_q": evaluation.value[..., None],
        "pi_scale": evaluation.scale,
        "pi_loss": pi_loss,
        "pi_grad_norm": optax.tree.norm(pi_gradients),
        "grad_norms_policy": norms(named_leaves(pi_gradients.network)),
        "target_after_polyak": moved.networks.out.bias,
    }


def of_planner(learner: train.Learner, given) -> dict[str, jax.Array]:
    model, actor, batch = learner.model, learner.actor, batch_of(given)
    pair = model.values.picked(PAIR)
    latent = model.encoder(batch.observation[0])
    actions = given["plan_value_actions"]
    still = jnp.zeros((4, 6))
    plan_value = plan.value(model, actor, pair, latent[0], actions, still)
    values = given["refit_values"][:, 0]
    fit = mppi.refit(given["refit_actions"], values, N_ELITES["refit"])
    _, elites = jax.lax.top_k(values, N_ELITES["refit"])
    out = {
        "plan_value": plan_value[:, None],
        "refit_elites": elites,
        "refit_weights": fit.weights,
        "refit_mean": fit.mean,
        "refit_std": fit.std,
        "refit_action": mppi.chosen(fit, jnp.zeros(3)),
    }
    proposals = plan.proposed(model, actor, latent[1], jnp.zeros((3, 1, 6)))
    fit = mppi.start(given["plan_previous_mean"], N_ELITES["plan"])
    steps = []
    for normal in given["plan_noise"]:
        tried = mppi.candidates(fit, proposals, normal)
        value = plan.value(model, actor, pair, latent[1], tried, jnp.zeros((12, 6)))
        fit = mppi.refit(tried, value, N_ELITES["plan"])
        steps.append((tried, value[:, None], fit.std))
    for name, column in zip(
        ("actions", "values", "std"), zip(*steps, strict=True), strict=True
    ):
        out[f"plan_{name}"] = jnp.stack(column)
    noise = plan.PlanNoise(
        proposals=jnp.zeros((3, 1, 6)),
        candidates=given["plan_noise"],
        last=jnp.zeros((2, 12, 6)),
        pairs=jnp.tile(PAIR, (2, 1)),
        elite=jnp.zeros(N_ELITES["plan"]),
        action=jnp.ones(6),
    )
    planned = plan.plan(
        model,
        actor,
        batch.observation[0, 1],
        given["plan_previous_mean"],
        noise,
        explore=False,
    )
    out |= {"plan_mean": planned.mean, "plan_action": planned.action}
    return out | {"plan_weights": fit.weights}


def of_functions(given) -> dict[str, jax.Array]:
    scale = losses.rescaled(jnp.ones(1), given["scale_input"])
    return {
        "scalar_symlog": symlog(given["scalar"]),
        "scalar_two_hot": BINS.two_hot(given["scalar"]),
        "symexp_output": symexp(given["symexp_input"]),
        "simnorm_output": layers.simnorm(given["simnorm_input"]),
        "scale_after": scale,
    }


INPUTS = {
    "observation",
    "action",
    "reward",
    "scalar",
    "symexp_input",
    "simnorm_input",
    "scale_input",
    "plan_value_actions",
    "refit_actions",
    "refit_values",
    "plan_previous_mean",
    "plan_noise",
}
NAMES = sorted(set(np.load(DATA / "tdmpc_reference.npz").files) - INPUTS)


@pytest.mark.parametrize("name", NAMES)
def test_equals_the_reference(name: str, computed, given) -> None:
    expected, ours = given[name], np.asarray(computed[name])
    assert ours.shape == expected.shape
    np.testing.assert_allclose(
        ours, expected, rtol=0, atol=1e-4 * np.abs(expected).max()
    )


def test_every_array_is_compared(computed) -> None:
    assert set(computed) == set(NAMES)


def test_parameter_counts(known) -> None:
    learner = from_reference(known)
    model, names = learner.model, ("encoder", "dynamics", "reward", "values")
    counts = [n_parameters(getattr(model, name)) for name in names]
    assert counts == [139_520, 794_112, 582_245, 2_911_225]
    assert n_parameters(learner.actor) == 533_516


def test_a_missing_name_and_a_wrong_shape(known) -> None:
    less = {k: v for k, v in known.items() if k != "_pi.1.ln.bias"}
    with pytest.raises(FallowError, match=r"no '_pi\.1\.ln\.bias'"):
        from_reference(less)
    with pytest.raises(FallowError, match=r"shape \(1, 7\)"):
        from_reference(known | {"_reward.1.bias": np.zeros((1, 7))})


def test_other_names_are_ignored(known) -> None:
    more = {"log_std_min": np.float32(-10), "_detach_Qs_params.0.bias": np.zeros(3)}
    assert n_parameters(from_reference(known | more).actor) == 533_516
