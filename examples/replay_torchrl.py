"""Draw from a TorchRL replay buffer by a rule, and resume it exactly.

python examples/replay_torchrl.py
"""

import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

from fallow.replay.adapters.torchrl import RuleSampler, RuleWriter

N_STEPS, CHANGE_STEP = 4000, 3000
GAIN = (1.0, 0.5)  # of the actuator, before and after


def make(rule: str) -> TensorDictReplayBuffer:
    """A TorchRL buffer that keeps and samples by a rule."""
    sampler = RuleSampler(rule, seed=0)
    storage = LazyTensorStorage(10_000)
    return TensorDictReplayBuffer(
        storage=storage, sampler=sampler, writer=RuleWriter(sampler), batch_size=16
    )


def run(rule: str) -> tuple[TensorDictReplayBuffer, float]:
    """The buffer at the end, and the actuator response fitted on its samples."""
    torch.manual_seed(0)
    buffer, response = make(rule), 0.0
    for step in range(0, N_STEPS, 10):
        action = torch.rand(10, 1) * 2 - 1
        change = GAIN[step >= CHANGE_STEP] * action + 0.1 * torch.randn(10, 1)
        buffer.extend(TensorDict({"action": action, "change": change}, [10]))
        for _ in range(10):
            batch = buffer.sample()
            error = batch["change"] - response * batch["action"]
            response += 0.1 * float((error * batch["action"]).mean())
    return buffer, response


for rule in ("passive", "recency:window_transitions=500"):
    buffer, response = run(rule)
    print(f"{rule}: response {response:.2f}, truth {GAIN[1]:.2f}")

again = make("passive")
again.load_state_dict(buffer.state_dict())
same = torch.equal(again.sample()["index"], buffer.sample()["index"])
print(f"a buffer restored from state_dict samples the same: {same}")
