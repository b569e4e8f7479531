"""Sample from a TorchRL replay buffer by a rule that finds a change by itself.

python examples/replay_torchrl.py    # needs the extra `torchrl`
"""

import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

from fallow.replay.adapters.torchrl import RuleSampler, RuleWriter
from fallow.replay.labeler import Tracked

N_EPISODES, CHANGE_EPISODE, N_STEPS = 60, 40, 50
GAIN = (1.0, 0.5)  # of the actuators, before and after
DRAG, NOISE = 0.1, 0.1


def make(rule: str) -> TensorDictReplayBuffer:
    """A TorchRL buffer that keeps and samples by a rule."""
    sampler = RuleSampler(rule, seed=0, tracked=Tracked("observation[0:2]", "action"))
    storage = LazyTensorStorage(10_000)
    return TensorDictReplayBuffer(
        storage=storage, sampler=sampler, writer=RuleWriter(sampler), batch_size=64
    )


def rollout(gain: float) -> TensorDict:
    """An episode in TorchRL's layout: what an action led to lies under `next`."""
    action = torch.rand(N_STEPS, 2) * 2 - 1
    velocity = torch.zeros(N_STEPS + 1, 2)
    for t in range(N_STEPS):
        push = gain * action[t] + NOISE * torch.randn(2)
        velocity[t + 1] = (1 - DRAG) * velocity[t] + push
    done = torch.zeros(N_STEPS, 1, dtype=torch.bool)
    done[-1] = True
    after = TensorDict({"observation": velocity[1:], "done": done}, [N_STEPS])
    content = {"observation": velocity[:-1], "action": action, "next": after}
    return TensorDict(content, [N_STEPS])


def run(rule: str) -> tuple[TensorDictReplayBuffer, float]:
    """The buffer at the end, and the actuator response fitted on its samples."""
    torch.manual_seed(0)
    buffer, response = make(rule), 0.0
    for episode in range(N_EPISODES):
        buffer.extend(rollout(GAIN[episode >= CHANGE_EPISODE]))
        for _ in range(N_STEPS):
            batch = buffer.sample()
            change = batch["next", "observation"] - (1 - DRAG) * batch["observation"]
            error = change - response * batch["action"]
            response += 0.1 * float((error * batch["action"]).mean())
    return buffer, response


for rule in ("passive", "adaptive:kappa_transitions=20"):
    buffer, response = run(rule)
    print(f"{rule}: response {response:.2f}, truth {GAIN[1]:.2f}")

again = make("passive")
again.load_state_dict(buffer.state_dict())
same = torch.equal(again.sample()["index"], buffer.sample()["index"])
print(f"a buffer restored from state_dict samples the same: {same}")
