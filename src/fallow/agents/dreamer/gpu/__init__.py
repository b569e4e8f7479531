"""DreamerV3's GPU kernels, reached through `dreamer.ops` alone.

They change speed and nothing else: every function has a plain form in JAX, and tests
compare the two. Pallas compiles them through Triton.

    launch              where kernels run, how rows are cut into tiles
    kernel_math         what kernels compute on a tile of rows
    kernels             one pass over rows: norms, gates, sampling, bins
    fused               those kernels as differentiable functions
    bins                the same, of logits over bins
    posterior_forward   the recurrence over observations, in place
    posterior_backward  its gradient
    stack               copies of whole rows
"""

from typing import Any

from fallow.agents.dreamer.gpu import (
    bins,
    fused,
    launch,
    posterior_backward,
    posterior_forward,
    stack,
)

__all__ = [
    "bins",
    "fused",
    "launch",
    "posterior_backward",
    "posterior_forward",
    "refusal",
    "stack",
]


def refusal(kernel: str, *given: Any) -> str | None:
    """Why a kernel is not used for rows of given widths; None if it is.

    For `stack` the arrays are given.
    """
    if kernel == "stack":
        return stack.refusal(*given)
    return launch.refusal(kernel, *given)
