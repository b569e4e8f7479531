"""The compiled programs of a fleet: an agent's functions mapped over branches."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from fallow import seeds
from fallow.agents.agent import Acted, Agent, Carry, State
from fallow.replay.fleet import Groups, Indices, gather
from fallow.replay.storage import Layout

Metrics = dict[str, jax.Array]


Leaves = list[jax.Array]
"""A state as a plain list: taking nested modules apart costs a millisecond a call."""


class Programs:
    """Acting, learning and scoring for R branches in one call each.

    Every branch has its own random keys, from its seed, the purpose and a count. A
    state goes in and out as its leaves; `tree` puts them together again.
    """

    def __init__(self, agent: Agent, layout: Layout, branch_seeds: Sequence[int]):
        self._agent, self._layout = agent, layout
        self._keys = {
            purpose: _keys(branch_seeds, purpose)
            for purpose in ("init", "learning", "acting", "evaluation")
        }
        one = jax.eval_shape(agent.init, jax.random.key(0))
        self._tree = jax.tree.structure(one)
        self._init = jax.jit(mapped(lambda key: jax.tree.leaves(agent.init(key))))
        self._update = jax.jit(mapped(self._update_one, shared=1), donate_argnums=0)
        self._act = {
            explore: jax.jit(
                mapped(partial(self._act_one, explore), shared=1), donate_argnums=1
            )
            for explore in (True, False)
        }
        self._errors = jax.jit(mapped(self._errors_one))
        self._nothing = jax.jit(self._nothing_all, static_argnums=0)

    @property
    def n_branches(self) -> int:
        """R."""
        return len(self._keys["init"])

    def init(self) -> Leaves:
        """(R, …) learners that have not learned yet."""
        return self._init(self._keys["init"])

    def tree(self, leaves: Leaves) -> State:
        """The agent's own state of these leaves."""
        return jax.tree.unflatten(self._tree, leaves)

    def nothing(self, n_worlds: int) -> Carry:
        """(R, W, …) carries of worlds that all begin anew."""
        return self._nothing(n_worlds)

    def _nothing_all(self, n_worlds: int) -> Carry:
        return jax.vmap(lambda _: self._agent.nothing(n_worlds))(self._keys["init"])

    def act(
        self,
        state: Leaves,
        carry: Carry,
        observation: np.ndarray,
        is_first: np.ndarray,
        count: int,
        explore: bool,
    ) -> Acted:
        """All branches' actions (R, W, …); randomness by `count`."""
        return self._act[explore](
            state,
            carry,
            jax.device_put(observation.astype(np.float32)),
            jax.device_put(is_first),
            self._keys["acting" if explore else "evaluation"],
            jax.device_put(np.uint32(count)),
        )

    def update(
        self, state: Leaves, groups: Groups, indices: Indices, n_updates: int
    ) -> tuple[Leaves, Metrics]:
        """As many updates as there are indices, after `n_updates` were made."""
        return self._update(
            state,
            groups,
            jax.device_put(np.swapaxes(indices.rows, 0, 1)),
            jax.device_put(np.swapaxes(indices.is_first, 0, 1)),
            self._keys["learning"],
            jax.device_put(np.uint32(n_updates)),
        )

    def errors(self, state: Leaves, groups: Groups, indices: Indices) -> np.ndarray:
        """(R, n) errors of the sequences of a sweep."""
        rows, is_first = indices.rows[0], indices.is_first[0]
        errors = self._errors(
            state, groups, jax.device_put(rows), jax.device_put(is_first)
        )
        return np.asarray(errors)

    def _update_one(
        self,
        leaves: Leaves,
        groups: Groups,
        rows: jax.Array,
        is_first: jax.Array,
        key: jax.Array,
        n_updates: jax.Array,
    ) -> tuple[Leaves, Metrics]:
        state = self.tree(leaves)
        metrics: Metrics = {}
        for k in range(len(rows)):  # unrolled: a scan would copy the state
            batch = gather(self._layout, groups, rows[k], is_first[k])
            own = jax.random.fold_in(key, n_updates + k)
            state, metrics = self._agent.update(state, batch, own)
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
        state, own = self.tree(leaves), jax.random.fold_in(key, count)
        return self._agent.act(state, carry, observation, is_first, own, explore)

    def _errors_one(
        self, leaves: Leaves, groups: Groups, rows: jax.Array, is_first: jax.Array
    ) -> jax.Array:
        batch = gather(self._layout, groups, rows, is_first)
        return self._agent.errors(self.tree(leaves), batch)


def mapped(function: Callable[..., Any], shared: int = 0) -> Callable[..., Any]:
    """`function` over the leading axis of all arguments but the last `shared` ones.

    On an accelerator all branches at once. A processor gains nothing from that and has
    slow products of many small matrices, so there it is one branch after the other,
    and a branch's numbers do not depend on the others to the last bit: the barriers
    keep the compiler from mixing a branch's program with what is around it.
    """

    def one_by_one(*arguments: Any) -> Any:
        cut = len(arguments) - shared
        own, common = arguments[:cut], arguments[cut:]

        def one(each: Any) -> Any:
            each = jax.lax.optimization_barrier((*each, *common))
            return jax.lax.optimization_barrier(function(*each))

        return jax.lax.map(one, own)

    def at_once(*arguments: Any) -> Any:
        axes = [0] * (len(arguments) - shared) + [None] * shared
        return jax.vmap(function, in_axes=axes)(*arguments)

    return one_by_one if jax.default_backend() == "cpu" else at_once


def _keys(branch_seeds: Sequence[int], purpose: str) -> jax.Array:
    derived = [seeds.derive(seed, purpose) for seed in branch_seeds]
    return jax.vmap(jax.random.key)(np.array(derived, np.uint32))


def named(tree: Any) -> dict[str, Any]:
    """The leaves of a pytree by path, e.g. `model.encoder.blocks[0].weight`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path).lstrip("."): leaf for path, leaf in leaves}
