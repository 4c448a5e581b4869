"""When the gradients of steps for several collections become an update of their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from neuroshard.distributed._updates import Updates
from neuroshard.errors import TensorError


class Backward:
    """The backward of one step. tables: by member, those that its lookups read. is_whole: whether the step is
    the only one of its forward."""

    def __init__(self, tables: Mapping[str, Sequence[str]]) -> None:
        self.tables = tables
        self.is_whole = False
        self.used: set[str] = set()  # members whose results have gradients
        self.is_over = False


class JointUpdates(Updates):
    """As Updates. Tables of members whose results have no gradients stay as they are, as if the collection
    had not been called. Several steps of one forward have one update, at the end of their backward()."""

    _backward: Backward | None = None  # that begins next
    _read: frozenset[str] = frozenset()  # tables of members that had gradients since the last update
    _reads_all = False
    _pass = -1  # backward() that will end with an update

    def begin(self, backward: Backward, member: str) -> None:
        """Says that results of a member have gradients, before gradient_settings() of their step."""
        if backward.is_over:
            raise TensorError(
                f"{member}: a second backward of one forward: results of all collections of a model come from one "
                "step, and have one backward. Add the losses up, or make the model by shard_model(..., "
                "one_step=False)")
        backward.used.add(member)
        self._backward = backward

    def gradient_settings(self) -> list[float]:
        backward, self._backward = self._backward, None
        if backward is None:  # of a traced step, which says nothing
            self._reads_all = True
        else:
            backward.is_over = True
            self._read |= {table for member in backward.used for table in backward.tables[member]}
        if backward is not None and backward.is_whole:
            settings = super().gradient_settings()
            if not self._keeps:
                self._forget()
            return settings
        with self.no_sync():
            settings = super().gradient_settings()
        task = torch._C._current_graph_task_id()
        if task != self._pass:
            self._pass = task
            count = self._count
            torch.autograd.Variable._execution_engine.queue_callback(lambda: self._end_pass(task, count))
        return settings

    def _end_pass(self, task: int, count: int) -> None:
        if task != self._pass:
            return
        self._pass, self._count = -1, count
        if not (self._blocks or self._arguments.at == "step" or count < self._arguments.every):
            self._update()

    def rates(self) -> list[float]:
        unread = frozenset() if self._reads_all or not self._read else frozenset(self._tables) - self._read
        return self._optimizer.rates_of(self._tables, self._frozen | unread)

    def _begin(self) -> None:
        super()._begin()
        self._forget()

    def _forget(self) -> None:
        self._read, self._reads_all = frozenset(), False
