"""A TorchRL sampler and writer that sample and keep by a Fallow rule.

    from fallow.replay.adapters.torchrl import RuleSampler, RuleWriter

    sampler = RuleSampler("recency:window_transitions=20000")
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(100_000), batch_size=256,
                                    sampler=sampler, writer=RuleWriter(sampler))
    sampler.replay.sampled()   # what was sampled so far

The bytes stay in TorchRL's storage; the pair shares a Fallow buffer without fields, of
which only ledger and sampler work. Each item is one step of a stream, so samples are
single transitions. Rows come in chunks of 64 with two in reserve: a storage of n
rows always holds the newest n - 191 or more.

The rule `adaptive` tracks the body from the items themselves; their ("next", "done")
says where episodes end:

    RuleSampler("adaptive", tracked=Tracked("observation[8:14]", "action"))

Ends are read only then. So `reservoir`, which keeps whole episodes, needs `tracked`
too; `reservoir:unit=chunk` does not. Several environments may be written in any order:
an item's trajectory is known by ("collector", "traj_ids"), or else by the item whose
("next", "observation") is its observation.

Errors for `graded` and `curious` are given with `update_priority(index, errors)`;
TorchRL's `update_tensordict_priority` acts for its prioritized samplers only.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.extras import explained

try:
    import torch
    from tensordict import is_tensor_collection
    from torchrl.data.replay_buffers.samplers import RandomSampler, Sampler
    from torchrl.data.replay_buffers.storages import Storage
    from torchrl.data.replay_buffers.writers import Writer
except ModuleNotFoundError as error:
    raise explained(error, "fallow.replay.adapters.torchrl", "torchrl") from None

from fallow.core.errors import FallowError
from fallow.replay.adapters.packing import FILE, pack, unpack
from fallow.replay.adapters.tracked_items import (
    UNTRACKED,
    TrackedItems,
    TrackedStep,
)
from fallow.replay.adapters.trajectories import STREAM, TrajectoryLabeler
from fallow.replay.buffer import Buffer, Ticket
from fallow.replay.labeler import Tracked, checked_tracked
from fallow.replay.ledger import CHUNK
from fallow.replay.rules import Rule

RESERVE = 2
"""Chunks that a ledger of one world has beyond its capacity."""


class RuleSampler(Sampler):
    """Samples storage indices by a rule; give it to a `RuleWriter` too.

    Args:
        rule: what is kept and how it is sampled.
        seed: of samples; None takes one from torch's global generator. The replay
            buffer's own generator is not used.
        tracked: which keys and columns of an item are velocities and the actions that
            drive them, for the rule `adaptive`; with it ends of episodes are read.

    Raises:
        FallowError: the rule keeps whole episodes and `tracked` is not given.
    """

    def __init__(
        self,
        rule: str | Rule = "passive",
        seed: int | None = None,
        tracked: Tracked | None = None,
    ) -> None:
        self._rule = Rule.parse(rule)
        if self._rule.needs_episodes and tracked is None:
            raise FallowError(
                f"rule '{rule}' keeps whole episodes, and without tracked= the sampler "
                "does not read where items end one; keep chunks: "
                "reservoir:unit=chunk, or give tracked=Tracked(…)"
            )
        tracked = checked_tracked(tracked)
        self.tracked = None if tracked is None else TrackedItems(tracked)
        self._seed = int(torch.randint(2**31, ())) if seed is None else seed
        self._n_rows = 0
        self._opened: Storage | None = None
        self._replay: Buffer | None = None

    @property
    def replay(self) -> Buffer:
        """Ledger and rule: `note_change` and `sampled` are methods of it."""
        if self._replay is None:
            raise FallowError(
                "the sampler has no writer; pass writer=RuleWriter(sampler) to the "
                "replay buffer, with this sampler"
            )
        return self._replay

    def open(self, storage: Storage) -> None:
        """Make the ledger of a storage."""
        n_rows = storage.max_size
        if self._opened is not None and self._opened is not storage:
            raise FallowError(
                f"the sampler keeps the ledger of a storage with {self._n_rows:,} rows "
                f"and was given another, with {n_rows:,}; make a pair for each"
            )
        if n_rows < (RESERVE + 1) * CHUNK:
            raise FallowError(
                f"the storage has {n_rows} rows and a rule needs "
                f"{(RESERVE + 1) * CHUNK} or more; make it larger"
            )
        if self._replay is None:
            self._replay = self._make_replay(n_rows)
            self._n_rows, self._opened = n_rows, storage

    def _make_replay(self, n_rows: int) -> Buffer:
        capacity = (n_rows // CHUNK - RESERVE) * CHUNK
        fields, tracked = {}, None
        if self.tracked is not None:
            fields, tracked = self.tracked.fields, self.tracked.tracked
        replay = Buffer(fields, 1, capacity, seed=self._seed, tracked=tracked)
        sampler = replay.sampler
        if tracked is not None:
            d = len(tracked.places(fields).action[1])
            sampler.make_labeler = functools.partial(
                TrajectoryLabeler, replay.ledger, tracked, d
            )
        try:
            sampler.set_rule(self._rule)
        except FallowError as error:
            raise FallowError(
                f"{error}. A storage of {n_rows:,} rows always holds the newest "
                f"{capacity:,}; make it larger"
            ) from None
        replay.ledger.leading_rows = 0  # an item is a whole transition
        return replay

    def sample(self, storage: Storage, batch_size: int) -> tuple[torch.Tensor, dict]:
        """Sample storage indices; torchrl reads the items."""
        sampler = self.replay.sampler
        rows = sampler.rows(sampler.sample(batch_size, 1), batch_size, 1)
        return torch.as_tensor(rows[:, 0], dtype=torch.long), {}

    def set_present_regime(self, regime: int) -> None:
        """The regime now in force; what was written before keeps its own."""
        self.replay.ledger.end_episode(STREAM)
        self.replay.set_present_regime(regime)

    def update_priority(
        self, index: Any, priority: Any, *, storage: Storage | None = None
    ) -> None:
        """Errors of items, for rules that read them; a chunk has their mean."""
        rows = np.atleast_1d(np.asarray(torch.as_tensor(index).cpu()))
        errors = torch.as_tensor(priority).detach().cpu().reshape(-1)
        if len(errors) not in (1, len(rows)):
            raise FallowError(
                f"{len(errors)} priorities for {len(rows)} items; give one for each, "
                "or one for all"
            )
        n_rows = self.replay.ledger.n_slots * CHUNK
        if len(rows) == 0 or rows.min() < 0 or rows.max() >= n_rows:
            raise FallowError(
                f"index is {rows.tolist()[:3]}…; give those that `sample` returned, "
                f"from 0 to {n_rows - 1:,}"
            )
        slots = rows // CHUNK
        slots, chunk = np.unique(slots, return_inverse=True)
        errors = np.broadcast_to(errors.double().numpy(), chunk.shape)
        mean = np.bincount(chunk, errors) / np.bincount(chunk)
        self.replay.set_errors(Ticket(slots, self.replay.ledger.stamp[slots]), mean)

    def _empty(self) -> None:
        self._rule = self.replay.rule
        self._replay = self._make_replay(self._n_rows)
        self._read_on()

    def _read_on(self) -> None:
        """Read further items as those of the trajectories that the ledger knows."""
        if self.tracked is not None:
            labeler = self.labeler
            self.tracked = self.tracked.again(labeler.running if labeler else ())

    @property
    def labeler(self) -> TrajectoryLabeler | None:
        """The labeler of the rule `adaptive`."""
        labeler = self.replay.sampler.labeler
        return labeler if isinstance(labeler, TrajectoryLabeler) else None

    def state_dict(self) -> dict[str, Any]:
        """Ledger, rule and random state."""
        content = bytearray(pack(self.replay))
        return {"replay": torch.frombuffer(content, dtype=torch.uint8)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave; sampling continues as it would have."""
        if "replay" not in state_dict:
            raise FallowError(
                f"the state has {', '.join(map(str, state_dict)) or 'nothing'} and no "
                "'replay'; load one that a RuleSampler gave"
            )
        unpack(self.replay, state_dict["replay"].cpu().numpy().tobytes())
        self._read_on()

    def dumps(self, path: Any) -> None:
        """Write ledger, rule and random state below a folder."""
        self.replay.save(Path(path) / FILE)

    def loads(self, path: Any) -> None:
        """Read what `dumps` wrote."""
        self.replay.load(Path(path) / FILE)
        self._read_on()

    def __repr__(self) -> str:
        rule = self._rule if self._replay is None else self._replay.rule
        return f"RuleSampler('{rule}')"


class RuleWriter(Writer):
    """Writes items to the rows that the sampler's ledger gives them.

    All state but the count of writes is the sampler's.
    """

    def __init__(self, sampler: RuleSampler) -> None:
        super().__init__()
        self.sampler = sampler
        self._write_count = 0

    def register_storage(self, storage: Storage) -> None:
        """Take the storage to write to, and set the sampler's size."""
        if storage.ndim != 1:
            raise FallowError(
                f"the storage has ndim {storage.ndim} and rules sample single items; "
                "make it with ndim=1 and extend with flattened batches"
            )
        samplers = [
            getattr(entity, "_sampler", None)
            for entity in storage._attached_entities_iter()
        ]
        if any(type(sampler) is RandomSampler for sampler in samplers):
            raise FallowError(
                "the replay buffer samples by TorchRL's RandomSampler and not by "
                f"{self.sampler}; pass sampler= and writer=RuleWriter(sampler)"
            )
        self.sampler.open(storage)
        super().register_storage(storage)

    def add(self, data: Any) -> int:
        """Write one item; returns its index."""
        one = data[None] if is_tensor_collection(data) else data
        row = int(self._advance(1, one)[0])
        self._write(row, data, row)
        return row

    def extend(self, data: Sequence) -> torch.Tensor:
        """Write items, oldest first; returns their indices."""
        if not (is_tensor_collection(data) or isinstance(data, torch.Tensor | list)):
            raise FallowError(
                f"extend was given a {type(data).__name__}; give it a tensordict, a "
                "tensor or a list of items"
            )
        rows = self._advance(len(data), data)
        index = written = torch.as_tensor(rows, dtype=torch.long)
        kept = _last_of_each(rows)
        if len(kept) < len(rows):
            written, data = index[kept], _take(data, kept)
        self._write(written, data, int(rows.max()))
        return index

    def _advance(self, n: int, data: Any) -> np.ndarray:
        """The rows of the next n items."""
        if n == 0:
            raise FallowError("extend was given no items; give it 1 or more")
        replay, tracked = self.sampler.replay, self.sampler.tracked
        steps: Iterator[TrackedStep] = itertools.repeat(UNTRACKED, n)
        if tracked is not None:
            steps = tracked.steps(data)
        labeler = self.sampler.labeler
        rows = np.zeros(n, np.int64)
        for item, step in enumerate(steps):  # its row may be given up for a later one
            if labeler is not None:
                labeler.trajectory = step.trajectory
            replay.add(np.array([step.is_first]), None, **step.fields)
            serial = np.array([replay.ledger.heads[STREAM] - 1])
            rows[item] = replay.ledger.rows(np.array([STREAM]), serial)[0]
            if step.is_last:
                replay.end_episode(STREAM)
                self._finish([step.trajectory])
        if tracked is not None:
            self._finish(tracked.trajectories.ended())
        self._write_count += n
        return rows

    def _finish(self, trajectories: Sequence[int]) -> None:
        """Let the tracker read trajectories that are over."""
        if self.sampler.labeler is not None:
            for number in trajectories:
                self.sampler.labeler.finish(number)

    def _write(self, index: Any, data: Any, last: int) -> None:
        storage = self._storage
        n_filled = max(len(storage), last + 1)
        storage.set(index, data)
        if hasattr(storage, "_len"):  # which counts overwritten rows again
            storage._len = n_filled
        for entity in storage._attached_entities_iter():
            entity.mark_update(index)

    def _empty(self, empty_write_count: bool = True) -> None:
        if empty_write_count:
            self._write_count = 0

    def state_dict(self) -> dict[str, Any]:
        """The count of writes."""
        return {"_write_count": self._write_count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self._write_count = state_dict["_write_count"]

    def dumps(self, path: Any) -> None:
        """Write the count of writes below a folder."""
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / "write_count.txt").write_text(str(self._write_count))

    def loads(self, path: Any) -> None:
        """Read what `dumps` wrote."""
        self._write_count = int((Path(path) / "write_count.txt").read_text())


def _last_of_each(rows: np.ndarray) -> np.ndarray:
    """Positions of the last item of every row, by row, as a list storage must grow."""
    return len(rows) - 1 - np.unique(rows[::-1], return_index=True)[1]


def _take(data: Any, kept: np.ndarray) -> Any:
    """Some items of a batch."""
    if isinstance(data, list):
        return [data[position] for position in kept]
    return data[torch.as_tensor(kept)]
