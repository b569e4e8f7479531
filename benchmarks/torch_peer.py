"""The authors' PyTorch programs, for `peers.py`: in a process without Fallow and JAX.

    python benchmarks/torch_peer.py dreamer|tdmpc CHECKOUT '{"device": "cpu", …}'

The third argument has the device, the sizes of the body and of a batch, and whether to
leave out torch.compile. Answers with lines of JSON: after three updates what runs and
with how many parameters, then for each line of standard input, a number of updates, the
seconds and CPU seconds that they took. What cannot start answers `{"error": …}`.

It imports the modules of the checkout, reads their settings from their YAML, and calls
their update on one batch of random numbers on the device. Of what they import, only
loggers and environments are left out, which an update does not call.
"""

import contextlib
import functools
import importlib
import json
import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

N_WARM_UP = 3
"""Updates before those that count: torch.compile compiles, warms up and records."""
OBSERVATION = {"orientations": 14, "height": 1, "velocity": 9}
"""Numbers of each part of dm_control's observation of the walker."""
EPISODE_LENGTH = 500
"""Transitions of an episode, from which TD-MPC2 takes its discount."""
NEEDS = {
    "dreamer": "torch and ruamel.yaml",
    "tdmpc": "torch, tensordict and omegaconf",
}


class PeerError(Exception):
    """Why the peer cannot run, in one sentence."""


class Peer(NamedTuple):
    """A program of other authors, ready to learn."""

    update: Callable[[], Any]
    n_parameters: int
    """Trained by gradients: without targets and averages of networks."""
    compute: str


class Stub(types.ModuleType):
    """A module that an update does not call; whatever is asked of it is a class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


def dreamer(checkout: Path, given: dict) -> Peer:
    """NM512's DreamerV3 with its settings `dmc_proprio`."""
    import torch

    stubs = {name: Stub(name) for name in ("gym", "torch.utils.tensorboard")}
    program = imported("dreamer", checkout, stubs)
    for owner in (sys.modules["networks"].MLP, sys.modules["tools"].DiscDist):
        replace_default(owner.__init__, "cuda", given["device"])
    config = dreamer_settings(checkout, given)
    spaces = {name: torch.empty(n) for name, n in OBSERVATION.items()}
    spaces["image"] = torch.empty(1, 1, 3)  # preprocessing asks for it, no network does
    space, no_steps = (
        types.SimpleNamespace(spaces=spaces),
        types.SimpleNamespace(step=0),
    )
    agent = program.Dreamer(space, None, config, no_steps, None).to(given["device"])
    agent.requires_grad_(False)  # as its main does; an update asks for gradients
    learned = (agent._wm, agent._task_behavior.actor, agent._task_behavior.value)
    return Peer(
        functools.partial(agent._train, dreamer_batch(config, spaces)),
        sum(p.numel() for module in learned for p in module.parameters()),
        "float16" if config.precision == 16 else "float32",
    )


def dreamer_settings(checkout: Path, given: dict) -> types.SimpleNamespace:
    """All settings by name; raises PeerError if batches are not as large as ours."""
    from ruamel.yaml import YAML

    settings = YAML(typ="safe", pure=True).load(checkout / "configs.yaml")
    config = merged(settings["defaults"], settings["dmc_proprio"])
    config |= {"device": given["device"], "num_actions": given["n_actuators"]}
    config["compile"] = config["compile"] and not given["eager"]
    check_batch((config["batch_size"], config["batch_length"]), given)
    return types.SimpleNamespace(**config)


def dreamer_batch(config: types.SimpleNamespace, spaces: dict) -> dict:
    """Random sequences without the start or end of an episode, on the device."""
    import torch

    shape = (config.batch_size, config.batch_length)
    batch = {name: torch.randn(*shape, *space.shape) for name, space in spaces.items()}
    batch["action"] = torch.rand(*shape, config.num_actions) * 2 - 1
    batch["reward"] = torch.rand(shape)
    batch["is_first"] = batch["is_terminal"] = torch.zeros(shape)
    return {name: values.to(config.device) for name, values in batch.items()}


def imported(name: str, folder: Path, stubs: dict[str, types.ModuleType]) -> Any:
    """A module of a checkout, of whose imports some are left out."""
    sys.modules.update(stubs)
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def replace_default(function: Any, value: str, new: str) -> None:
    """Another value where an argument's default is this one."""
    function.__defaults__ = tuple(
        new if default == value else default for default in function.__defaults__
    )


def merged(base: dict, update: dict) -> dict:
    """Settings with others above them, level by level."""
    result = dict(base)
    for name, value in update.items():
        below = result.get(name)
        both = isinstance(value, dict) and isinstance(below, dict)
        result[name] = merged(below, value) if both else value
    return result


def tdmpc(checkout: Path, given: dict) -> Peer:
    """The authors' TD-MPC2, one task, its default size of 5M parameters."""
    import torch

    hydra = Stub("hydra")
    hydra.utils = types.SimpleNamespace(get_original_cwd=lambda: ".")
    program = imported("tdmpc2", checkout / "tdmpc2", {"hydra": hydra})
    config = tdmpc_settings(checkout, given)
    torch.backends.cudnn.benchmark = True  # as its train.py sets them
    torch.set_float32_matmul_precision("high")
    with on_device(given["device"], program, sys.modules["common.scale"]):
        agent = program.TDMPC2(config)
    for optimizer in (agent.optim, agent.pi_optim):
        for group in optimizer.param_groups:  # a CPU has no capturable form of Adam
            group["capturable"] = given["device"] != "cpu"
    batch = tdmpc_batch(config, given["device"])
    buffer = types.SimpleNamespace(sample=lambda: batch)
    update = functools.partial(agent.update, buffer)
    return Peer(update, agent.model.total_params, "float32")


def tdmpc_settings(checkout: Path, given: dict) -> Any:
    """The settings, parsed by the peer; raises PeerError as `dreamer_settings` does."""
    from omegaconf import OmegaConf

    parse_cfg = importlib.import_module("common.parser").parse_cfg
    config = OmegaConf.load(checkout / "tdmpc2" / "config.yaml")
    config.task, config.model_size = "walker-walk", 5
    config.compile = config.compile and not given["eager"]
    config = parse_cfg(config)
    config.obs_shape = {"state": (sum(OBSERVATION.values()),)}
    config.action_dim, config.episode_length = given["n_actuators"], EPISODE_LENGTH
    check_batch((config.batch_size, config.horizon + 1), given)
    return config


def tdmpc_batch(config: Any, device: str) -> tuple:
    """Observations, actions, rewards, ends and no task, random, on the device."""
    import torch

    steps, rows = config.horizon, config.batch_size
    batch = (
        torch.randn(steps + 1, rows, *config.obs_shape["state"]),
        torch.rand(steps, rows, config.action_dim) * 2 - 1,
        torch.rand(steps, rows, 1),
        torch.zeros(steps, rows, 1),
    )
    return (*(values.to(device) for values in batch), None)


@contextlib.contextmanager
def on_device(device: str, *modules: types.ModuleType) -> Iterator[None]:
    """In these modules, which name a card, `torch.device` is this device."""
    import torch

    class Torch:
        """torch, but for the device."""

        def __getattr__(self, name: str) -> Any:
            return getattr(torch, name)

        def device(self, _: str) -> torch.device:
            return torch.device(device)

    with contextlib.ExitStack() as stack:
        for module in modules:
            stack.enter_context(mock.patch.object(module, "torch", Torch()))
        yield


def check_batch(sizes: tuple[int, int], given: dict) -> None:
    """That a batch of the peer is as large as one of ours: sequences and steps."""
    if list(sizes) != given["batch"]:
        raise PeerError(
            f"a batch of the peer is {list(sizes)} and ours {given['batch']}, in "
            "sequences and steps; take the commit that peers.py names"
        )


def started(agent: str, checkout: Path, given: dict) -> Peer:
    """The peer, or why it cannot run."""
    try:
        import torch

        if given["device"] == "cuda" and not torch.cuda.is_available():
            raise PeerError(
                f"torch {torch.__version__} sees no GPU; install a build for this card "
                "or choose --device cpu"
            )
        torch.manual_seed(0)
        return {"dreamer": dreamer, "tdmpc": tdmpc}[agent](checkout, given)
    except ImportError as missing:
        raise PeerError(
            f"{agent} of {checkout} needs {NEEDS[agent]} in {sys.executable} "
            f"({missing}); install them there, or name another Python with --python"
        ) from missing


def seconds(peer: Peer, n_updates: int, device: str) -> tuple[float, float]:
    """Seconds and CPU seconds of so many updates, the device's work included."""
    import torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(n_updates):
        peer.update()
    wait()
    return time.perf_counter() - wall, time.process_time() - cpu


def description(peer: Peer) -> dict[str, Any]:
    """What runs, for the table; `graphs` counts what torch.compile has compiled."""
    import torch
    import torch._dynamo

    return {
        "torch": torch.__version__,
        "compute": peer.compute,
        "products": torch.get_float32_matmul_precision(),
        "graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"],
        "parameters": peer.n_parameters,
    }


def main() -> None:
    agent, checkout, given = (
        sys.argv[1],
        Path(sys.argv[2]).resolve(),
        json.loads(sys.argv[3]),
    )
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the peer prints

    def answer(value: Any) -> None:
        print(json.dumps(value), file=answers, flush=True)

    try:
        peer = started(agent, checkout, given)
        seconds(peer, N_WARM_UP, given["device"])
    except PeerError as error:
        answer({"error": str(error)})
        return
    answer(description(peer))
    for line in sys.stdin:
        answer(seconds(peer, int(line), given["device"]))


if __name__ == "__main__":
    main()
