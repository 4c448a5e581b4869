"""Sends the ids of the next batches during the step of the current one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch
import torch.distributed as dist

from neuroshard import _fields
from neuroshard._group.agreement import require_same
from neuroshard.distributed._lockstep import lockstep
from neuroshard.distributed._sent_ids import Entry, Failed, SentIds

if TYPE_CHECKING:
    from neuroshard.distributed._collection import _Sharded

T = TypeVar("T")


def pipeline(loader: Iterable[T], ids: Mapping[_Sharded, Callable[[T], object]], *, depth: int = 2,
             process_group: dist.ProcessGroup | None = None) -> Iterator[T]:
    """The batches of a rank's loader, as lockstep() gives them, on the device of the modules. During
    the step of a batch the ids of the next depth - 1 batches travel.

        for batch in ns.distributed.pipeline(loader, {tables: lambda batch: batch.ids}):
            loss(model(batch.dense, tables(batch.ids)), batch.labels).backward()

    ids: for each module, in the same order on all ranks, a function that gives the ids of a batch. The
    module's forward() or start() is to be called with this very object, and takes what was sent;
    losses and weights have the same bits as without a pipeline. Ids of a batch are sent as soon as the
    batch before has its results, so that they do not delay these. depth: 1 sends nothing ahead.
    process_group: of lockstep(); None: that of the modules.

    Batches are taken from the loader depth - 1 steps early, and are not to be changed in the loop
    (TensorError). Errors of the loader, of a function of `ids` and of wrong ids are raised at the step
    of their batch, when those before it have ended. A module can be called with other ids, too, alike
    on all ranks: what was sent before is then sent again. A loop that ends early must end at the same
    step on all ranks."""
    from neuroshard.distributed._modules.view import by_tables
    ids = by_tables(ids) if isinstance(ids, Mapping) else ids
    check_arguments(ids, depth)
    group = process_group or next(iter(ids)).process_group
    require_same({"depth": str(depth), "number of modules": str(len(ids))}, group,
                 "all ranks must give pipeline() the same arguments")
    return run(loader, ids, depth, group)


def run(loader: Iterable[T], ids: Mapping[_Sharded, Callable[[T], object]], depth: int,
        group: dist.ProcessGroup | None) -> Iterator[T]:
    place = next(iter(ids))._engine.device.place
    batches = lockstep((to_device(batch, place) for batch in loader), group)
    if depth == 1:
        yield from batches
        return
    users = []
    try:
        for module, function in ids.items():
            users.append(User(module, module.send_ahead(), function))
        yield from send_and_take(batches, users, depth)
    finally:
        for user in users:
            user.module.send_no_more()


def check_arguments(ids: object, depth: object) -> None:
    if _fields.whole(depth, "depth") < 1:
        raise ValueError(f"depth: expected at least 1, got: {depth}")
    if not isinstance(ids, Mapping) or not ids:
        raise TypeError("ids: expected a dict with a function of a batch for each module, got: "
                        f"{_fields.shown(ids)}")
    for module, function in ids.items():
        if not hasattr(module, "send_ahead"):
            raise TypeError("ids: expected sharded embedding collections as keys, got: "
                            f"{_fields.shown(module)}")
        if not callable(function):
            raise TypeError("ids: expected a function of a batch for each module, got: "
                            f"{_fields.shown(function)}")


@dataclass(frozen=True)
class User:
    """A module and the function that gives its ids of a batch."""

    module: _Sharded
    sent: SentIds
    function: Callable[[object], object]

    def add(self, batch: object) -> Entry:
        try:
            ids = self.function(batch)
        except Exception as error:  # noqa: BLE001, raised at the batch's step
            ids = Failed(error)
        return self.sent.add(ids)

    def updates(self) -> int:
        """Of the module; 0 if the loop has closed it."""
        try:
            return self.module.step
        except ValueError:
            return 0


def send_and_take(batches: Iterator[T], users: list[User], depth: int) -> Iterator[T]:
    ahead: deque[tuple[T, list[Entry]]] = deque()
    error, ended = None, False
    while True:
        while len(ahead) < depth and not ended:
            try:
                batch = next(batches)
            except StopIteration:
                ended = True
            except Exception as failure:  # noqa: BLE001, raised at its step
                error, ended = failure, True
            else:
                ahead.append((batch, [user.add(batch) for user in users]))
        if not ahead:
            if error:
                raise error
            return
        batch, entries = ahead.popleft()
        for user, entry in zip(users, entries):
            user.sent.raise_failure(entry)
        before = [user.updates() for user in users]
        yield batch
        for user, entry, updates in zip(users, entries, before):
            user.sent.end(entry, user.updates() - updates)


def to_device(batch: object, place: torch.device) -> object:
    """The batch with its tensors on a GPU; copies of pinned memory do not wait."""
    if place.type == "cpu":
        return batch
    if hasattr(batch, "to"):
        return batch.to(place, non_blocking=True)
    return torch.utils._pytree.tree_map(
        lambda leaf: leaf.to(place, non_blocking=True) if hasattr(leaf, "to") else leaf, batch)
