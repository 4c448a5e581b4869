"""Collectives of a step on tensors of the device, in the current stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist


POLL_S = 0.0001
# torch 2.14 renamed it.
all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class Arrival:
    """A tensor in flight: wait() returns it, valid in the current stream."""

    def __init__(self, tensor: torch.Tensor, work: dist.Work | None = None, held: object = None,
                 require_going: Callable[[], None] | None = None) -> None:
        self._tensor, self._work, self._held = tensor, work, held
        self._require_going = require_going

    def wait(self, host: bool = False) -> torch.Tensor:
        """host: whether the host waits too, as it always does for Gloo; it stops with an error if a
        rank is gone."""
        if self._work is not None:
            if host or self._tensor.device.type == "cpu":
                self._poll(self._work)
            self._work.wait()
            self._work = self._held = None
        return self._tensor

    def _poll(self, work: dist.Work) -> None:
        while self._require_going and not work.is_completed():
            self._require_going()
            time.sleep(POLL_S)


class Transport:
    """Collectives of one rank. group: None if there is one rank only. wire: the type in which
    results and gradients are sent. require_going: raises the cause once the group has ended."""

    def __init__(self, group: dist.ProcessGroup | None, rank: int, ranks: int, wire: torch.dtype,
                 require_going: Callable[[], None] | None = None) -> None:
        self.group, self.rank, self.ranks, self.wire = group, rank, ranks, wire
        self._require_going = require_going

    def swap(self, send: torch.Tensor, send_counts: Sequence[int],
             receive_counts: Sequence[int]) -> Arrival:
        """All-to-all of values sorted by receiving rank; gives those for this rank, sorted by
        sender."""
        if self.group is None:
            return Arrival(send)
        received = send.new_empty(sum(receive_counts))
        work = dist.all_to_all_single(received, send, list(receive_counts), list(send_counts),
                                      group=self.group, async_op=True)
        return Arrival(received, work, send, self._require_going)

    def swap_rows(self, send: torch.Tensor, send_counts: Sequence[int],
                  receive_counts: Sequence[int]) -> Arrival:
        """The same for f32 results and gradients, which are sent in the type `wire`."""
        if self.group is None:
            return Arrival(send)
        return self.swap(send.to(self.wire), send_counts, receive_counts)

    def gather_text(self, text: str | None) -> list[str | None]:
        """The texts of all ranks, in rank order."""
        texts = [text] * self.ranks
        if self.group is not None:
            dist.all_gather_object(texts, text, group=self.group)
        return texts

    def gather(self, send: torch.Tensor, counts: Sequence[int]) -> Arrival:
        """All-gather of f32 values, which are sent in the type `wire`; those of rank r begin at
        r * max(counts)."""
        if self.group is None:
            return Arrival(send)
        most = max(counts)
        padded = send.new_zeros(most, dtype=self.wire)
        padded[:send.shape[0]] = send
        received = padded.new_empty(most * self.ranks)
        work = all_gather(received, padded, group=self.group, async_op=True)
        return Arrival(received, work, padded, self._require_going)
