"""A lookup whose ids are on their way."""

from __future__ import annotations

from typing import Protocol

import torch

from neuroshard.distributed._distinct_ids import Sent
from neuroshard.distributed._sent_ids import SentIds
from neuroshard.errors import TensorError


class Owner(Protocol):
    """The module of a lookup."""

    def _look_up(self, ticket: torch.Tensor) -> torch.Tensor: ...

    def _finish(self, ticket: torch.Tensor, sent: Sent, keyed: bool,
                anchor: torch.Tensor | None) -> object: ...


class Pending:
    """A lookup in flight: wait() returns its results. look_up() lets them travel before. Made by start() of a
    collection."""

    def __init__(self, owner: Owner, ticket: torch.Tensor, sent: Sent, keyed: bool,
                 anchor: torch.Tensor | None) -> None:
        self._owner, self._ticket, self._sent, self._keyed = owner, ticket, sent, keyed
        self._anchor = anchor
        self._looked_up = False
        self._sent_ahead: SentIds[Pending] | None = None

    def look_up(self) -> None:
        """Waits for the ids of all ranks, looks rows up and starts to send results, so that they
        travel during the work before wait(). Results are of the tables as they are now: an update
        between this call and wait() does not show in them. All ranks call it, in one order with
        start(), as devices in groups hand ids out in it; or none does. Without it wait() does this.
        Later calls do nothing."""
        ticket = self._taken()
        if not self._looked_up:
            self._ticket = self._owner._look_up(ticket)
            self._looked_up = True

    def wait(self) -> object:
        """The results, as calling the module returns them. To be called once."""
        ticket, self._ticket = self._taken(), None
        results = self._owner._finish(ticket, self._sent, self._keyed, self._anchor)
        if self._sent_ahead:
            self._sent_ahead.send_next()
        return results

    def _taken(self) -> torch.Tensor:
        if self._ticket is None:
            raise TensorError("the results of these ids have been taken")
        return self._ticket
