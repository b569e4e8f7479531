"""The state of a tracker as plain arrays and a JSON-able header, and as one file."""

from copy import copy
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fallow.core import arrayfile
from fallow.core.errors import FallowError
from fallow.tracking.body import BodyModel, Sums
from fallow.tracking.config import TrackerConfig
from fallow.tracking.features import Scaling
from fallow.tracking.held import Held, Reading, Trial
from fallow.tracking.regimes import KnownRegime
from fallow.tracking.signals import signals_of

if TYPE_CHECKING:
    from fallow.tracking.tracker import Tracker

KIND, VERSION = "tracker", 4
_REGIME = ("body", "n_episodes")
_USUAL = ("mean", "variance", "n_episodes")


def save(tracker: "Tracker") -> dict[str, Any]:
    """Arrays by name, and the header under `header`."""
    trial = tracker.trial
    header = {
        "version": VERSION,
        "n_actuators": tracker.n_actuators,
        "control_step_s": tracker.control_step_s,
        "config": asdict(tracker.config),
        "present": tracker.present,
        "n_skipped": tracker.n_skipped,
        "n_spread": tracker.spread.n_episodes,
        "usual": {name: getattr(tracker.usual, name) for name in _USUAL},
        "n_bodies": len(tracker.bodies),
        "held": [held.episode for held in tracker.held],
        "gained": [h.reading.gained for h in tracker.held if h.reading is not None],
        "trial": None if trial is None else [held.episode for held in trial.held],
        "n_blocks": len(tracker.blocks),
        "known": [[k, v] for k, v in tracker.suspicion.known.items()],
        "regimes": [{n: getattr(r, n) for n in _REGIME} for r in tracker.regimes],
    }
    bodies = {str(i): body for i, body in enumerate(tracker.bodies)}
    bodies |= {} if trial is None else {"trial": trial.body}
    arrays: dict[str, np.ndarray] = {}
    for name, body in bodies.items():
        arrays |= _saved_sums(f"body.{name}.fast", body.fast)
        arrays |= _saved_sums(f"body.{name}.slow", body.slow)
        arrays[f"body.{name}.scatter"] = body.scatter
        arrays[f"body.{name}.weights"] = body.weights
    arrays |= _saved_sums("recent", tracker.recent)
    arrays["spread"] = tracker.spread.covariance
    arrays["unknown"] = tracker.suspicion.unknown
    arrays["labels"] = tracker.labels()
    if tracker.scaling is not None:
        for field in fields(Scaling):
            arrays[f"scaling.{field.name}"] = getattr(tracker.scaling, field.name)
    for i, regime in enumerate(tracker.regimes):
        arrays[f"regime.{i}.gain"] = regime.gain
        arrays[f"regime.{i}.base"] = regime.base
    kept = tracker.held + ([] if trial is None else trial.held)
    parts = [(held.velocities, held.actions) for held in kept] + tracker.blocks
    for i, (velocities, actions) in enumerate(parts):
        arrays[f"part.{i}.velocities"] = velocities
        arrays[f"part.{i}.actions"] = actions
    return {"header": header} | {name: array.copy() for name, array in arrays.items()}


def _saved_sums(name: str, sums: Sums) -> dict[str, np.ndarray]:
    return {f"{name}.gram": sums.gram, f"{name}.cross": sums.cross}


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
    first = tracker.bodies[0]
    tracker.bodies = [
        _body(first, saved, f"body.{i}") for i in range(header["n_bodies"])
    ]
    tracker.recent = _sums(saved, "recent")
    for name, value in header["usual"].items():
        setattr(tracker.usual, name, value)
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


def _sums(saved: dict[str, Any], name: str) -> Sums:
    return Sums(saved[f"{name}.gram"].copy(), saved[f"{name}.cross"].copy())


def _body(first: BodyModel, saved: dict[str, Any], name: str) -> BodyModel:
    body = copy(first)
    body.set_sums(_sums(saved, f"{name}.fast"), _sums(saved, f"{name}.slow"))
    body.scatter = saved[f"{name}.scatter"].copy()
    body.weights = saved[f"{name}.weights"].copy()
    return body


def _regime(saved: dict[str, Any], i: int, header: dict[str, Any]) -> KnownRegime:
    gain, base = saved[f"regime.{i}.gain"].copy(), saved[f"regime.{i}.base"].copy()
    return KnownRegime(i, gain, base, **header)


def _restore_parts(tracker: "Tracker", saved: dict[str, Any]) -> None:
    """Episodes and blocks; what was read of an episode follows from the episode."""
    header = saved["header"]
    episodes = header["held"] + (header["trial"] or [])
    parts = [
        (saved[f"part.{i}.velocities"].copy(), saved[f"part.{i}.actions"].copy())
        for i in range(len(episodes) + header["n_blocks"])
    ]
    tracker.blocks = parts[len(episodes) :]
    kept = [
        Held(episode, *part) for episode, part in zip(episodes, parts, strict=False)
    ]
    if tracker.scaling is not None:
        designs = [
            tracker.basis.design(signals_of(h.velocities, h.actions), tracker.scaling)
            for h in kept
        ]
        kept = [replace(h, design=d) for h, d in zip(kept, designs, strict=True)]
    n_held = len(header["held"])
    tracker.held = kept[:n_held]
    if header["trial"] is not None:
        trial_body = _body(tracker.bodies[0], saved, "body.trial")
        tracker.trial = Trial(trial_body, kept[n_held:])
    body, gain = tracker.body, tracker.regime.gain
    for i, gained in enumerate(header["gained"]):
        design = designs[i]
        reading = Reading(
            body.fit(design, gain), body.sums_of(design, gain, body.weights), gained
        )
        tracker.held[i] = replace(tracker.held[i], reading=reading)


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
