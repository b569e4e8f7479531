"""Train a PyTorch model on sequences from a buffer while the dynamics change.

python examples/replay_torch.py    # needs PyTorch
"""

import numpy as np
import torch

from fallow.replay import Buffer, Field

N_WORLDS, N_STEPS, CHANGE_STEP, EPISODE = 4, 600, 450, 50
GAIN = (1.0, 0.4)  # of the motor, before and after


def advance(state: np.ndarray, action: np.ndarray, gain: float) -> np.ndarray:
    """One step of a cart on a spring: (worlds, 2) position and velocity."""
    velocity = 0.9 * state[:, 1] - 0.2 * state[:, 0] + gain * action[:, 0]
    return np.stack([state[:, 0] + 0.2 * velocity, velocity], 1).astype(np.float32)


def predict(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Squared errors (batch, length - 1); 0 across the start of an episode."""
    inputs = torch.cat([batch["state"][:, :-1], batch["action"][:, 1:]], -1)
    error = (model(inputs) - batch["state"][:, 1:]).square().mean(-1)
    return error * ~batch["is_first"][:, 1:]


def run(rule: str) -> float:
    """Error of a model on the new dynamics, trained on what the rule samples."""
    random = np.random.default_rng(0)
    torch.manual_seed(0)
    fields = {"state": Field((2,)), "action": Field((1,))}
    buffer = Buffer(fields, N_WORLDS, rule=rule)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)
    )
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    state = np.zeros((N_WORLDS, 2), np.float32)
    for step in range(N_STEPS):
        is_first = np.full(N_WORLDS, step % EPISODE == 0)
        action = random.uniform(-1, 1, (N_WORLDS, 1)).astype(np.float32)
        action[is_first] = 0
        state = advance(state, action, GAIN[step >= CHANGE_STEP])
        state[is_first] = 0
        buffer.add(is_first=is_first, state=state, action=action)
        if step >= 8:
            sampled = buffer.sample(16, 8)
            batch = {name: torch.from_numpy(sampled[name]) for name in sampled}
            optimiser.zero_grad()
            predict(model, batch).mean().backward()
            optimiser.step()
    buffer.rule = "recency:window_transitions=200"  # only the new dynamics
    sampled = buffer.sample(256, 8)
    batch = {name: torch.from_numpy(sampled[name]) for name in sampled}
    return predict(model, batch).mean().item()


for rule in ("passive", "recency:window_transitions=400"):
    print(f"{rule}: squared error {run(rule):.4f} on the dynamics now in force")
