"""A run's numbers for TensorBoard and for Weights & Biases."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fallow.core.extras import load

if TYPE_CHECKING:  # it imports jax
    from fallow.agents.progress import Progress

RETURN = "evaluation/return"


class Scalars(Protocol):
    """A target of numbers."""

    def write(self, numbers: Mapping[str, float], frame: int) -> None:
        """Write numbers by name, as of a frame."""

    def close(self) -> None:
        """Write what is pending and close."""


class TensorBoard:
    """Event files in a folder; extra `tensorboard`."""

    def __init__(self, folder: Path) -> None:
        self._library = load("tensorboardX", "tensorboard", "--tensorboard")
        self._folder = folder

    @cached_property
    def _writer(self) -> Any:  # not before the run has made its folder
        return self._library.SummaryWriter(str(self._folder))

    def write(self, numbers: Mapping[str, float], frame: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, frame)

    def close(self) -> None:
        if "_writer" in self.__dict__:
            self._writer.close()


class WeightsAndBiases:
    """A run of a project; extra `wandb`. Its variables (WANDB_MODE …) apply."""

    def __init__(self, project: str, name: str, folder: Path) -> None:
        self._library = load("wandb", "wandb", "--wandb")
        self._given = {"project": project, "name": name, "dir": str(folder)}

    @cached_property
    def _run(self) -> Any:
        run = self._library.init(**self._given)
        # a fleet begins at smaller frames than the one before; wandb's steps only grow
        run.define_metric("*", step_metric="frame")
        return run

    def write(self, numbers: Mapping[str, float], frame: int) -> None:
        self._run.log({"frame": frame, **numbers})

    def close(self) -> None:
        if "_run" in self.__dict__:
            self._run.finish()


def writers(folder: Path, tensorboard: bool, wandb: str | None) -> list[Scalars]:
    """What the options --tensorboard and --wandb ask for; `folder` is the run's.

    Raises:
        FallowError: the library is not installed.
    """
    found: list[Scalars] = []
    if tensorboard:
        found.append(TensorBoard(folder / "events"))
    if wandb is not None:
        found.append(WeightsAndBiases(wandb, folder.name, folder))
    return found


def write_progress(
    scalars: Sequence[Scalars], progress: "Progress", names: Sequence[str]
) -> None:
    """Metrics and returns of each branch, under its name."""
    for one in scalars:
        if progress.metrics:
            one.write(_named(progress.metrics, names), progress.frame)
        if progress.evaluation is not None:
            frame, returns = progress.evaluation
            one.write(_named({RETURN: returns.mean(1)}, names), frame)


def _named(numbers: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Each number of each branch; by its index where it has no name."""
    found = {}
    for what, values in numbers.items():
        each = np.atleast_1d(values)
        if len(names) != len(each):
            names = [f"{index:03d}" for index in range(len(each))]
        for name, value in zip(names, each, strict=True):
            found[f"{what}/{name}"] = float(value)
    return found
