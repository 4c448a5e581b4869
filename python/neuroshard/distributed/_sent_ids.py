"""The ids of coming batches that a module has sent ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from neuroshard.errors import TensorError

P = TypeVar("P")


@dataclass
class Sent(Generic[P]):
    """Ids on their way, or the error that came of making or sending them."""

    features: object
    pending: P | None
    error: Exception | None = None


@dataclass(frozen=True)
class Failed:
    """In place of ids: the error that making them gave on this rank."""

    error: Exception


class SentIds(Generic[P]):
    """Sends ids of one module in the order in which it will be called with them: those of a batch
    as soon as the batch before has its results. Calls with these ids take what was sent.

    send: sends ids, gives what waits for their results. refuse: tells the other ranks, which send
    theirs, the error of this one. updates: how many the module has had."""

    def __init__(self, send: Callable[[object], P], refuse: Callable[[str], None],
                 updates: Callable[[], int]) -> None:
        self._send_ids, self._refuse, self._updates = send, refuse, updates
        self._unsent: deque[object] = deque()
        self._sent: deque[Sent[P]] = deque()
        # The number of updates after the backward that is to come, if one is.
        self._awaited = 0

    def add(self, features: object) -> None:
        """Adds the ids of a batch, which are sent at once if no other batch is before it. A Failed
        lets the other ranks know of the error."""
        if self._unsent or self._sent:
            self._unsent.append(features)
        else:
            self._sent.append(self._send(features))

    def take(self, features: object) -> P | None:
        """What was sent of these ids; None for other ids. Raises the error that sending them gave,
        and a TensorError for other ids between a lookup and its update: looking those up would read
        the ids that were sent before them, too early."""
        if not self._sent or self._sent[0].features is not features:
            if self._sent and self._updates() < self._awaited:
                raise TensorError("ids other than those that neuroshard.distributed.pipeline sends "
                                  "were given before the backward of this batch; ids of the next "
                                  "one are on their way and would be looked up too early. Look "
                                  "others up after the backward, or leave pipeline out")
            return None
        taken = self._sent.popleft()
        if taken.error:
            raise taken.error
        return taken.pending

    def has_results(self, learns: bool) -> None:
        """To be called when results of sent ids are there: sends the next ones. learns: whether an
        update by these ids follows."""
        if learns:
            self._awaited = self._updates() + 1
        while self._unsent:
            self._sent.append(self._send(self._unsent.popleft()))

    def end_of(self, features: object, updates: int) -> None:
        """The batch with these ids is over, during which the module had `updates` updates. Drops
        what was not taken. Raises a TensorError if the module was trained by other ids."""
        if self._sent and self._sent[0].features is features:
            self._sent.popleft()
            if updates:
                raise TensorError("the module was trained by ids other than those that "
                                  "neuroshard.distributed.pipeline has sent for this batch. Call it "
                                  "with the very object that the function of `ids` gives; a "
                                  "compiled model cannot take what was sent")
            self.has_results(learns=False)

    def close(self) -> None:
        """Sends nothing more; drops what was not taken."""
        self._unsent.clear()
        self._sent.clear()

    def _send(self, features: object) -> Sent[P]:
        if isinstance(features, Failed):
            self._refuse(str(features.error))
            return Sent(features, None, features.error)
        try:
            return Sent(features, self._send_ids(features))
        except Exception as error:  # noqa: BLE001, raised when it is the batch's turn
            return Sent(features, None, error)
