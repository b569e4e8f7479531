"""An estimate of the time and memory of a study, before anything is trained."""

import time
from dataclasses import dataclass

from fallow.core.errors import FallowError
from fallow.core.text import counted
from fallow.study.fleets import PlannedFleet, check_fit, fleets_of
from fallow.study.plan import Plan

PROCESSOR_SHARE = 0.25
"""Share of a CPU's rate in large matrix products that an update reaches."""
ACCELERATOR_SHARE = 0.13
"""The same of an accelerator (benchmarks/fleet.md: 80 branches of lean, 14 %)."""
LEAST_UPDATE_S = 1 / 150
"""An update of a fleet on an accelerator, however small (benchmarks/fleet.md)."""
SIZE, ROUNDS = 1536, 8
"""Of the products that are timed."""


@dataclass(frozen=True)
class PlanEstimate:
    """Size and cost of a study before it starts."""

    plan: Plan
    fleets: tuple[PlannedFleet, ...]
    updates: int
    """Of all trunks, prefixes and branches."""
    seconds: float
    """For learning on this machine, roughly; worlds and evaluations come on top."""
    device: str

    @property
    def largest_bytes(self) -> int:
        """Device memory of the largest fleet."""
        return max(fleet.n_bytes for fleet in self.fleets)

    def lines(self) -> list[str]:
        """The estimate as lines of text."""
        plan = self.plan
        return [
            f"study {plan.name}, preset {plan.preset}, seeds "
            f"{', '.join(str(seed) for seed in plan.seeds)}",
            f"branches   {len(plan.branches())}",
            f"trunks     {len(plan.trunks())}",
            *self._prefixes(),
            f"evaluated  {_grid(plan)}",
            f"fleets     {len(self.fleets)}: "
            + ", ".join(str(len(fleet.branches)) for fleet in self.fleets)
            + f" branches, for device '{plan.device}'",
            f"updates    {self.updates:,}",
            f"memory     {self.largest_bytes / 2**30:.1f} GiB, the largest fleet",
            f"time       about {duration_text(self.seconds)} of learning on this "
            f"machine ({self.device})",
            *self._remark(),
        ]

    def _prefixes(self) -> list[str]:
        shared = [len(f.prefixes) for f in self.fleets if f.cost.prefix_updates]
        if not shared:
            return []
        return [
            f"prefixes   {sum(shared)}: before the change at branch frame "
            f"{self.plan.shift_frame:,}, one for all conditions of a rule"
        ]

    def _remark(self) -> list[str]:
        try:
            check_fit(self.plan, self.fleets)
        except FallowError as error:
            return [f"it does not fit: {error}"]
        return []


def _grid(plan: Plan) -> str:
    """Branch frames of the evaluations, and those whose mean is J."""
    every, averaged = plan.evaluation_frames, plan.return_frames
    text = f"{counted(plan.n_episodes, 'episode')} at "
    text += f"{counted(len(every), 'branch frame')}, {_span(every)}; J is "
    if len(averaged) == 1:
        return text + f"the one at {_span(averaged)}"
    return text + f"the mean of {len(averaged)}, {_span(averaged)}"


def _span(frames: tuple[int, ...]) -> str:
    if len(frames) < 4:
        return ", ".join(f"{frame:,}" for frame in frames) or "none"
    return f"{frames[0]:,}, {frames[1]:,}, …, {frames[-1]:,}"


def estimate(plan: Plan) -> PlanEstimate:
    """Branches, fleets, updates, memory and time for this machine."""
    import jax

    from fallow.agents.compiling import on_processor

    fleets = fleets_of(plan)
    rate = operations_per_s()
    least_s = 0.0 if on_processor() else LEAST_UPDATE_S
    share = PROCESSOR_SHARE if on_processor() else ACCELERATOR_SHARE
    seconds, updates, seen = 0.0, 0, set()
    for fleet in fleets:
        new = [trunk for trunk in fleet.trunks if trunk.id not in seen]
        seen |= {trunk.id for trunk in new}
        trunks = ("trunks", len(new), fleet.cost.trunk_updates)
        for _, company, n_updates in (trunks, *fleet.stages()[1:]):
            update_s = company * fleet.cost.update_flops / (share * rate)
            seconds += n_updates * max(update_s, least_s if company else 0.0)
            updates += n_updates * company
    device = jax.devices()[0].device_kind
    return PlanEstimate(plan, fleets, updates, seconds, device)


def operations_per_s() -> float:
    """Floating-point operations a second of large matrix products on this machine."""
    import jax
    import jax.numpy as jnp

    from fallow.agents.compiling import on_processor

    kind = jnp.float32 if on_processor() else jnp.bfloat16
    matrix = jnp.ones((SIZE, SIZE), kind)
    product = jax.jit(jnp.matmul)
    product(matrix, matrix).block_until_ready()
    began = time.perf_counter()
    for _ in range(ROUNDS):
        done = product(matrix, matrix)
    done.block_until_ready()
    return 2 * SIZE**3 * ROUNDS / (time.perf_counter() - began)


def duration_text(seconds: float) -> str:
    """A duration in its largest sensible unit."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
