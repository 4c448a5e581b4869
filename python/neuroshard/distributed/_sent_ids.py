"""The ids of coming batches that a module has sent ahead."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import torch

from neuroshard.errors import TensorError

P = TypeVar("P")


@dataclass(frozen=True)
class Failed:
    """In place of ids: the error that making them gave on this rank."""

    error: Exception


class MapsAhead(Protocol[P]):
    """Maps dynamic ids of steps ahead of sending them (_dynamic_ids.ahead.MappingAhead)."""

    def begin(self, features: object) -> object: ...

    def send(self, mapped: object) -> P: ...

    def drop(self, mapped: object) -> None: ...

    def keep(self, mapped: object) -> bool: ...

    def recall(self, tells: bool = True) -> None: ...


@dataclass(eq=False)
class Entry(Generic[P]):
    """The ids of one step. mapped: they are mapped ahead; pending: they are on their way; error: what came
    of sending them."""

    ids: object
    mapped: object = None
    pending: P | None = None
    error: Exception | None = None
    taken: bool = False
    # Others were given in its step, so that what was sent had to be dropped.
    recalled: bool = False
    # Tensors and their versions when they were sent.
    versions: list[tuple[torch.Tensor, int]] = field(default_factory=list)

    @property
    def is_sent(self) -> bool:
        return self.pending is not None or self.error is not None

    def drop(self) -> None:
        self.mapped, self.pending, self.error, self.versions = None, None, None, []


class SentIds(Generic[P]):
    """Sends the ids of a module's steps: those of a step as soon as the step before has its results.
    A step's ids take what was sent. Before other ids all that was sent is dropped, to be sent again:
    lookups run in the order in which ids are sent, so that those of later steps would run too early.

    send: sends ids, gives what waits for their results. tensors: those that were sent. refuse: tells
    the other ranks, which send theirs, the error of this one. mapping: of dynamic ids, which are mapped as
    soon as they are there. A step that is not as was expected then, in its mode or as others before it
    are not over, counts as one of other ids."""

    def __init__(self, send: Callable[[object], P], tensors: Callable[[P], list[torch.Tensor]],
                 refuse: Callable[[str], None], mapping: MapsAhead[P] | None) -> None:
        self._send_ids, self._tensors, self._refuse = send, tensors, refuse
        self._mapping = mapping
        self._entries: deque[Entry[P]] = deque()  # of the current step and those after it

    def add(self, ids: object) -> Entry[P]:
        """Adds a step after the others. Its ids are sent at once if it is the only one. A Failed lets
        the other ranks know of the error."""
        entry = Entry(ids)
        self._entries.append(entry)
        self._map(entry)
        if len(self._entries) == 1:
            self._send(entry)
        return entry

    def current(self) -> object:
        """The ids of the current step, if nothing has taken them; else None."""
        entry = self._entries[0] if self._entries else None
        return None if entry is None or entry.taken or isinstance(entry.ids, Failed) else entry.ids

    def start(self, ids: object) -> tuple[P, bool]:
        """What waits for the results of ids, and whether they are those of the current step. Raises
        the error that sending them gave, and a TensorError if they were changed since."""
        entry = self._entries[0] if self._entries else None
        if entry is None or entry.taken or not are_same(entry.ids, ids):
            self.recall()
            return self._send_ids(ids), False
        entry.taken = True
        if entry.mapped and not self._mapping.keep(entry.mapped):
            self.recall()
        if not entry.is_sent:
            return self._send_ids(ids), True
        if entry.error:
            raise entry.error
        if any(tensor._version != version for tensor, version in entry.versions):
            raise TensorError("the ids were changed in place after neuroshard.distributed.pipeline "
                              "had sent them; change them in the loader")
        pending, entry.pending = entry.pending, None
        return pending, True

    def send_next(self) -> None:
        """Sends the ids of all later steps. To be called when results of the current one are there."""
        self._send_unsent(first=1)

    def raise_failure(self, entry: Entry[P]) -> None:
        """Raises the error of a Failed at its step."""
        if isinstance(entry.ids, Failed):
            if not entry.is_sent:
                self._send(entry)
            raise entry.error

    def end(self, entry: Entry[P], updates: int) -> None:
        """Ends a step, in which the module had `updates` updates. Raises a TensorError if it was
        trained by ids that did not come through start()."""
        self._entries.popleft()
        if entry.mapped and not entry.taken:
            self.recall()  # of a step that did not call the module
        if updates > 0 and entry.is_sent and not (entry.taken or entry.recalled):
            raise TensorError("the module was trained by ids other than those that "
                              "neuroshard.distributed.pipeline has sent for this batch; a compiled "
                              "model cannot take what was sent")
        entry.drop()
        self._send_unsent(first=0)

    def close(self) -> None:
        """Sends nothing more; drops what was not taken."""
        self._entries.clear()
        if self._mapping:  # the end of a program tells others itself
            self._mapping.recall(tells=False)

    def recall(self) -> None:
        """Drops all that was sent and not taken."""
        if self._mapping:
            self._mapping.recall()
        for entry in list(self._entries):  # dropping an error may close the pipeline that it ended
            entry.recalled |= entry.is_sent
            entry.drop()

    def _send_unsent(self, first: int) -> None:
        for entry in itertools.islice(self._entries, first, None):
            if not entry.is_sent:
                self._send(entry)

    def _map(self, entry: Entry[P]) -> None:
        if self._mapping:
            entry.versions = versions_of(torch.utils._pytree.tree_leaves(entry.ids))
            entry.mapped = self._mapping.begin(entry.ids)

    def _send(self, entry: Entry[P]) -> None:
        if self._mapping and entry.mapped is None:
            self._map(entry)
        if isinstance(entry.ids, Failed):
            entry.error = entry.ids.error
            if self._mapping:
                self._mapping.drop(entry.mapped)
            self._refuse(f"the ids of a batch could not be made: {type(entry.error).__name__}: "
                         f"{entry.error}")
            return
        # Whatever the mode of the step before: the step may train.
        with torch.inference_mode(False), torch.enable_grad():
            try:
                entry.pending = self._mapping.send(entry.mapped) if self._mapping else self._send_ids(entry.ids)
            except Exception as error:  # noqa: BLE001, raised at its step
                entry.error = error
                return
        entry.versions = [*(entry.versions or versions_of(torch.utils._pytree.tree_leaves(entry.ids))),
                          *versions_of(self._tensors(entry.pending))]


def are_same(ids: object, others: object) -> bool:
    """Whether they are one object, or dicts of the same objects."""
    if isinstance(ids, Mapping) and isinstance(others, Mapping):
        return ids.keys() == others.keys() and all(ids[key] is others[key] for key in ids)
    return ids is others


def versions_of(leaves: Iterable[object]) -> list[tuple[torch.Tensor, int]]:
    return [(one, one._version) for one in leaves
            if isinstance(one, torch.Tensor) and not one.is_inference()]
