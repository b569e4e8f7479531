"""The state of a tracker as plain arrays and a JSON-able header, and as one file."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fallow.core import arrayfile
from fallow.core.errors import FallowError
from fallow.tracking.config import TrackerConfig
from fallow.tracking.features import Scaling
from fallow.tracking.regimes import KnownRegime
from fallow.tracking.signals import signals_of

if TYPE_CHECKING:
    from fallow.tracking.tracker import Tracker

KIND, VERSION = "tracker", 1
_BODY = ("gram", "cross", "scatter", "weights")
_REGIME = ("is_gain", "score", "n_episodes")


def save(tracker: "Tracker") -> dict[str, Any]:
    """Arrays by name, and the header under `header`."""
    header = {
        "version": VERSION,
        "n_actuators": tracker.n_actuators,
        "control_step_s": tracker.control_step_s,
        "config": asdict(tracker.config),
        "present": tracker.present,
        "n_skipped": tracker.n_skipped,
        "n_spread": tracker.spread.n_episodes,
        "held": [held.episode for held in tracker.held],
        "n_blocks": len(tracker.blocks),
        "known": [[k, v] for k, v in tracker.suspicion.known.items()],
        "regimes": [{n: getattr(r, n) for n in _REGIME} for r in tracker.regimes],
    }
    arrays = {f"body.{name}": getattr(tracker.body, name) for name in _BODY}
    arrays["spread"] = tracker.spread.covariance
    arrays["unknown"] = tracker.suspicion.unknown
    arrays["labels"] = tracker.labels()
    if tracker.scaling is not None:
        for field in fields(Scaling):
            arrays[f"scaling.{field.name}"] = getattr(tracker.scaling, field.name)
    for i, regime in enumerate(tracker.regimes):
        arrays[f"regime.{i}.theta"], arrays[f"regime.{i}.base"] = (
            regime.theta,
            regime.base,
        )
    parts = [(h.velocities, h.actions) for h in tracker.held] + tracker.blocks
    for i, (velocities, actions) in enumerate(parts):
        arrays[f"part.{i}.velocities"], arrays[f"part.{i}.actions"] = (
            velocities,
            actions,
        )
    return {"header": header} | {name: array.copy() for name, array in arrays.items()}


def restore(cls: "type[Tracker]", saved: dict[str, Any]) -> "Tracker":
    """A tracker that continues exactly where the state was saved."""
    header = saved["header"]
    if header.get("version") != VERSION:
        raise FallowError(
            f"the tracker's state is of version {header.get('version')}; this needs "
            f"version {VERSION}; track the log again from its start"
        )
    config = TrackerConfig(**header["config"])
    tracker = cls(header["n_actuators"], header["control_step_s"], config)
    for name in _BODY:
        setattr(tracker.body, name, saved[f"body.{name}"].copy())
    tracker.spread.covariance = saved["spread"].copy()
    tracker.spread.n_episodes = header["n_spread"]
    tracker.suspicion.unknown = saved["unknown"].copy()
    tracker.suspicion.known = {k: v for k, v in header["known"]}
    tracker.label_list = saved["labels"].tolist()
    tracker.present, tracker.n_skipped = header["present"], header["n_skipped"]
    tracker.regimes = [_regime(saved, i, r) for i, r in enumerate(header["regimes"])]
    if "scaling.state" in saved:
        units = {f.name: saved[f"scaling.{f.name}"].copy() for f in fields(Scaling)}
        tracker.scaling = Scaling(**units)
    _restore_parts(tracker, saved)
    return tracker


def _regime(saved: dict[str, Any], i: int, header: dict[str, Any]) -> KnownRegime:
    theta, base = saved[f"regime.{i}.theta"].copy(), saved[f"regime.{i}.base"].copy()
    return KnownRegime(i, theta, base, **header)


def _restore_parts(tracker: "Tracker", saved: dict[str, Any]) -> None:
    from fallow.tracking.tracker import Held

    header = saved["header"]
    n_held = len(header["held"])
    parts = [
        (saved[f"part.{i}.velocities"].copy(), saved[f"part.{i}.actions"].copy())
        for i in range(n_held + header["n_blocks"])
    ]
    tracker.blocks = parts[n_held:]
    for episode, (v, a) in zip(header["held"], parts, strict=False):
        design = None
        if tracker.scaling is not None:
            design = tracker.basis.design(signals_of(v, a), tracker.scaling)
        tracker.held.append(Held(episode, v, a, design))


def write_tracker(path: str | Path, tracker: "Tracker") -> None:
    """Write the state to one checked file, or leave the old file as it is."""
    saved = tracker.save()
    header = saved.pop("header")
    arrayfile.save(path, KIND, VERSION, saved, header)


def read_tracker(path: str | Path) -> "Tracker":
    """Read a tracker back.

    Raises:
        FallowError: no such file, of another kind or version, or damaged.
    """
    from fallow.tracking.tracker import Tracker

    arrays, header = arrayfile.load(path, KIND, VERSION)
    return Tracker.restore(arrays | {"header": header})
