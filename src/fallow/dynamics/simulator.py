"""Loads MuJoCo, checks its version and compiles bodies."""

import ctypes
import functools
import itertools
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError
from fallow.dynamics.tasks import Body

OLDEST, FIRST_TOO_NEW = (3, 17), (4,)

UNUSED = ("ISLAND", "MIDPHASE", "AUTORESET", "EQUALITY", "FRICTIONLOSS", "MULTICCD")
"""Machinery of MuJoCo that single, simple bodies do not need. Without it every number
stays the same to the bit and a step is some 6 % cheaper. Without AUTORESET a diverging
simulation is not restarted in silence either."""

STAGE_NONE = 0
"""mjSTAGE_NONE: compute nothing at the new state."""
STAGE_VELOCITY = 2
"""mjSTAGE_VEL: positions, velocities and their sensors up to date after a step."""


def check_version(version: str) -> None:
    """Raise if this MuJoCo cannot work: `mujoco.batch` came with 3.17."""
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if not OLDEST <= numbers < FIRST_TOO_NEW:
        raise FallowError(
            f"mujoco {version} is installed and Fallow needs 3.17 or a later 3.x; in a "
            "fresh environment: pip install 'mujoco>=3.17,<4'"
        )


@functools.cache
def load() -> Any:
    """Import MuJoCo, checking its version before its newest parts."""
    try:
        import mujoco
    except ImportError as error:
        raise FallowError(
            f"mujoco cannot be imported ({error}); "
            "in a fresh environment: pip install 'mujoco>=3.17,<4'"
        ) from error
    check_version(mujoco.__version__)
    import mujoco.batch

    _stop_profiling_clock(mujoco)
    return mujoco


def _stop_profiling_clock(mujoco: Any) -> None:
    """Stop filling `MjData.timer` in this process: its clock takes a tenth of a step.

    `mujoco.set_mjcb_time(None)` starts it again. The Python bindings cannot stop it,
    so this clears MuJoCo's own variable; where the library is not found, it runs on.
    """
    for library in Path(mujoco.__file__).parent.glob("libmujoco*"):
        ctypes.c_void_p.in_dll(ctypes.CDLL(str(library)), "mjcb_time").value = None


def compile_body(body: Body) -> Any:
    """The compiled `MjModel` of a body."""
    mujoco = load()
    spec = mujoco.MjSpec.from_string(body.mjcf)
    _spell_out_contacts(spec, spec.compile())
    model = spec.compile()
    if body.total_mass_kg is not None:
        mujoco.mj_setTotalmass(model, body.total_mass_kg)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    for name in UNUSED:
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}")
    return model


def _spell_out_contacts(spec: Any, model: Any) -> None:
    """List the pairs of geoms that can touch, instead of searching them every step.

    The same contacts in the same order, so the same numbers to the bit, for a tenth
    less time. A pair has the larger of its geoms' frictions, as MuJoCo's own rule.
    """
    geoms = list(spec.geoms)
    for first, second in itertools.combinations(range(model.ngeom), 2):
        if _can_touch(model, first, second):
            sliding, spin, roll = model.geom_friction[[first, second]].max(axis=0)
            spec.add_pair(
                geomname1=geoms[first].name,
                geomname2=geoms[second].name,
                condim=max(model.geom_condim[[first, second]]),
                friction=[sliding, sliding, spin, roll, roll],
            )
    for geom in geoms:
        geom.contype = geom.conaffinity = 0


def _can_touch(model: Any, first: int, second: int) -> bool:
    """MuJoCo's own filter: other bodies, not parent and child, and bits that match."""
    body, other = model.geom_bodyid[[first, second]]
    parent, other_parent = model.body_parentid[[body, other]]
    related = (parent == other and other != 0) or (other_parent == body and body != 0)
    return (
        body != other
        and not related
        and bool(
            model.geom_contype[first] & model.geom_conaffinity[second]
            or model.geom_contype[second] & model.geom_conaffinity[first]
        )
    )
