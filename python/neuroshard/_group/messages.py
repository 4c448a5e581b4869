"""An all-to-all over Gloo as messages between pairs of ranks, receives first, as the engine's own
(lib/RuntimeTorch/PeerMessages.h says why)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist


def exchange(received: torch.Tensor, sent: torch.Tensor, receives: Sequence[int],
             sends: Sequence[int]) -> None:
    """What all_to_all_single does in the default group: slice p of `sent`, of sends[p] elements, goes
    to rank p, and slice p of `received` comes from it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    to, of = torch.split(sent, list(sends)), torch.split(received, list(receives))
    of[rank].copy_(to[rank])
    before, after = ([(rank + sign * step) % size for step in range(1, size)] for sign in (-1, 1))
    works = [dist.irecv(of[peer], peer) for peer in before if receives[peer]]
    works += [dist.isend(to[peer], peer) for peer in after if sends[peer]]
    for work in works:
        work.wait()
