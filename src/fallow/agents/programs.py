"""The compiled programs of a fleet: an agent's functions mapped over branches.

Branches are held in shards. On an accelerator there is one, and all its branches are
computed at once. A CPU gains nothing from that, and its products of many small matrices
are slow. There every branch is one shard, as many shards run at a time as there are
cores, and the numbers of a branch are bit-identical whatever the other branches are.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from fallow.agents.base import Acted, Agent, Carry, State
from fallow.agents.compiling import Program, on_processor
from fallow.core import seeds
from fallow.replay.device_buffer import Groups, Indices, gather
from fallow.replay.storage import Layout

Metrics = dict[str, np.ndarray]
Leaves = list[jax.Array]
"""A state as a plain list: taking nested modules apart costs a millisecond a call."""
Shards = list[Any]
"""One entry for each shard, its arrays with a leading axis of the shard's branches."""
THREADS_PER_CORE = 4
"""Threads that start programs; more than one, since none waits for its programs."""

T = TypeVar("T")


class Actions(NamedTuple):
    """Next actions of R branches in W worlds each; reading an array waits for it."""

    shards: list[Acted]

    @classmethod
    def under_way(cls, shards: list[Acted]) -> "Actions":
        """Results of programs just started, copied to the host in the background."""
        for shard in shards:
            for array in (shard.action, shard.mean, shard.std):
                array.copy_to_host_async()
        return cls(shards)

    @property
    def action(self) -> np.ndarray:
        """(R, W, n_actuators)."""
        return joined([shard.action for shard in self.shards])

    @property
    def policy(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation, each as `action`."""
        means, stds = zip(
            *((shard.mean, shard.std) for shard in self.shards), strict=True
        )
        return joined(means), joined(stds)

    @property
    def carry(self) -> Shards:
        """The carry, on the device."""
        return [shard.carry for shard in self.shards]


class Programs:
    """Acting, learning and scoring for R branches.

    Every branch has its own random keys, from its seed, the purpose and a count.
    """

    def __init__(
        self, agent: Agent, layout: Layout, branch_seeds: Sequence[int]
    ) -> None:
        self._agent, self._layout = agent, layout
        self.n_branches = len(branch_seeds)
        self._slices = _shards(self.n_branches)
        n_threads = min(len(self._slices), THREADS_PER_CORE * (os.cpu_count() or 1))
        self._threads = [ThreadPoolExecutor(1) for _ in range(n_threads)]
        self._started: set[str] = set()
        self._places = [
            jax.device_put(np.arange(s.start, s.stop, dtype=np.int32))
            for s in self._slices
        ]
        self._keys = {
            purpose: [_keys(branch_seeds[s], purpose) for s in self._slices]
            for purpose in ("init", "learning", "acting", "evaluation")
        }
        one = jax.eval_shape(agent.init, jax.random.key(0))
        self._tree = jax.tree.structure(one)
        about = f"{agent} {layout}"
        # of agents that others wrote it is not known when their sources change
        keep = type(agent).__module__.startswith("fallow.")

        def program(name: str, *given: Any, **named: Any) -> Program:
            return Program(mapped(*given), f"{name} {about}", keep=keep, **named)

        self._init = program("init", lambda key: jax.tree.leaves(agent.init(key)))
        self._update = program("update", self._update_one, 1, donate=(0,))
        self._copied = jax.jit(lambda leaves: [jnp.copy(leaf) for leaf in leaves])
        self._chosen = jax.jit(mapped(_chosen), donate_argnums=1)
        self._act = {
            explore: program(name, partial(self._act_one, explore), 1, donate=(1,))
            for name, explore in (("explore", True), ("exploit", False))
        }
        self._errors = program("errors", self._errors_one, 1)

    def init(self) -> Shards:
        """Learners that have not learned yet."""
        return [self._init(keys) for keys in self._keys["init"]]

    def initial_carry(self, n_worlds: int) -> Shards:
        """Carries at the start of an episode in every world."""
        return self.sharded([self._agent.initial_carry(n_worlds)] * self.n_branches)

    def branch(self, shards: Shards, index: int) -> Any:
        """The part of a branch in `shards`, without the leading axis."""
        size = self._slices[0].stop
        return jax.tree.map(lambda x: x[index % size], shards[index // size])

    def sharded(self, branches: Sequence[Any]) -> Shards:
        """The inverse: pytrees of all branches, in shards."""
        return [
            jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *branches[place])
            for place in self._slices
        ]

    def copied(self, state: Shards) -> Shards:
        """A copy that later updates do not change."""
        return [self._copied(leaves) for leaves in state]

    def tree(self, leaves: Leaves) -> State:
        """The agent's own state of these leaves."""
        return jax.tree.unflatten(self._tree, leaves)

    def act(
        self,
        state: Shards,
        carry: Shards,
        observation: np.ndarray,
        is_first: np.ndarray,
        count: int,
        explore: bool,
    ) -> Actions:
        """Start the next actions of all branches; randomness by `count`."""
        purpose = "acting" if explore else "evaluation"
        seen, begins = observation.astype(np.float32), is_first.copy()

        def act(shard: int, place: slice) -> Acted:
            return self._act[explore](
                state[shard],
                carry[shard],
                seen[place],
                begins[place],
                self._keys[purpose][shard],
                np.uint32(count),
            )

        return Actions.under_way(self._each(purpose, act))

    def update(
        self,
        state: Shards,
        metrics: Shards,
        groups: Groups,
        indices: Indices,
        n_updates: np.ndarray,
        active: np.ndarray,
    ) -> tuple[Shards, Shards]:
        """As many updates as there are indices, of the branches that are `active`.

        Each (R,) of `n_updates` was made before. Returns the new state and the last
        update's metrics; other branches keep what they have in both.
        """

        def update(shard: int, place: slice) -> tuple[Leaves, dict[str, jax.Array]]:
            some = active[place]
            if not some.any():
                return state[shard], metrics[shard]
            given = (
                np.swapaxes(indices.rows[:, place], 0, 1),
                np.swapaxes(indices.is_first[:, place], 0, 1),
                self._places[shard],
                self._keys["learning"][shard],
                n_updates[place].astype(np.uint32),
                groups,
            )
            if some.all():
                return self._update(state[shard], *given)
            # rare, so that it is not worth a large program of its own
            before = self._copied(state[shard])
            after, new_metrics = self._update(state[shard], *given)
            unknown = {
                name: jnp.full_like(x, jnp.nan) for name, x in new_metrics.items()
            }
            both = (before, metrics[shard] or unknown)
            return self._chosen(some, (after, new_metrics), both)

        results = self._each("learning", update)
        return [result[0] for result in results], [result[1] for result in results]

    def errors(self, state: Shards, groups: Groups, indices: Indices) -> np.ndarray:
        """(R, n) errors of the sequences of a sweep."""
        rows, is_first = indices.rows[0], indices.is_first[0]

        def errors(shard: int, place: slice) -> jax.Array:
            return self._errors(
                state[shard],
                rows[place],
                is_first[place],
                self._places[shard],
                groups,
            )

        return joined(self._each("errors", errors))

    def _each(self, program: str, call: Callable[[int, slice], T]) -> list[T]:
        """What `call` starts for each shard, on a thread of the shard's own.

        Programs that one thread starts run one after the other, though they share
        nothing; those of several threads run on all cores. The first shard goes ahead
        once, or every thread would compile the program.
        """
        if len(self._slices) == 1:
            return [call(0, self._slices[0])]
        ahead = [] if program in self._started else [call(0, self._slices[0])]
        self._started.add(program)
        begun = [
            self._threads[shard % len(self._threads)].submit(call, shard, place)
            for shard, place in enumerate(self._slices)
            if shard >= len(ahead)
        ]
        return ahead + [one.result() for one in begun]

    def _update_one(
        self,
        leaves: Leaves,
        rows: jax.Array,
        is_first: jax.Array,
        place: jax.Array,
        key: jax.Array,
        n_updates: jax.Array,
        groups: Groups,
    ) -> tuple[Leaves, dict[str, jax.Array]]:
        state = self.tree(leaves)
        metrics: dict[str, jax.Array] = {}
        for k in range(len(rows)):  # unrolled: a scan would copy the state
            batch = self._batch(groups, place, rows[k], is_first[k])
            update_key = jax.random.fold_in(key, n_updates + k)
            state, metrics = self._agent.update(state, batch, update_key)
        return jax.tree.leaves(state), metrics

    def _act_one(
        self,
        explore: bool,
        leaves: Leaves,
        carry: Carry,
        observation: jax.Array,
        is_first: jax.Array,
        key: jax.Array,
        count: jax.Array,
    ) -> Acted:
        state, act_key = self.tree(leaves), jax.random.fold_in(key, count)
        return self._agent.act(state, carry, observation, is_first, act_key, explore)

    def _errors_one(
        self,
        leaves: Leaves,
        rows: jax.Array,
        is_first: jax.Array,
        place: jax.Array,
        groups: Groups,
    ) -> jax.Array:
        batch = self._batch(groups, place, rows, is_first)
        return self._agent.errors(self.tree(leaves), batch)

    def _batch(
        self, groups: Groups, place: jax.Array, rows: jax.Array, is_first: jax.Array
    ) -> dict[str, jax.Array]:
        """One branch's batch out of all branches' rows, (R, n_rows, width) a type."""
        n_rows = next(iter(groups.values())).shape[1]
        flat = {k: g.reshape(-1, g.shape[-1]) for k, g in groups.items()}
        return gather(self._layout, flat, place * n_rows + rows, is_first)


def _chosen(is_active: jax.Array, after: T, before: T) -> T:
    """The state of a branch after an update, if it had one."""
    return jax.tree.map(partial(jnp.where, is_active), after, before)


def mapped(function: Callable[..., Any], shared: int = 0) -> Callable[..., Any]:
    """`function` over the leading axis of all arguments but the last `shared` ones.

    On a processor that axis has length 1.
    """

    def only(*arguments: Any) -> Any:
        cut = len(arguments) - shared
        unmapped = jax.tree.map(lambda x: x[0], arguments[:cut])
        return jax.tree.map(lambda x: x[None], function(*unmapped, *arguments[cut:]))

    def at_once(*arguments: Any) -> Any:
        axes = [0] * (len(arguments) - shared) + [None] * shared
        return jax.vmap(function, in_axes=axes)(*arguments)

    return only if on_processor() else at_once


def joined(shards: Sequence[jax.Array]) -> np.ndarray:
    """One array (R, …) on the host."""
    return np.concatenate([np.asarray(shard) for shard in shards])


def joined_metrics(shards: Sequence[dict[str, Any]]) -> Metrics:
    """Metrics (R,) on the host, NaN where a shard has none; waits for the device."""
    names = dict.fromkeys(name for shard in shards for name in shard)
    none = np.full(1, np.nan)  # a shard without them has one branch: see `update`
    return {name: joined([shard.get(name, none) for shard in shards]) for name in names}


def _shards(n_branches: int) -> list[slice]:
    """Which branches share a program call."""
    size = 1 if on_processor() else n_branches
    return [slice(start, start + size) for start in range(0, n_branches, size)]


def _keys(branch_seeds: Sequence[int], purpose: str) -> jax.Array:
    derived = [seeds.derive(seed, purpose) for seed in branch_seeds]
    return jax.vmap(jax.random.key)(np.array(derived, np.uint32))


def named(tree: Any) -> dict[str, Any]:
    """The leaves of a pytree by path, e.g. `model.encoder.blocks[0].weight`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path).lstrip("."): leaf for path, leaf in leaves}
