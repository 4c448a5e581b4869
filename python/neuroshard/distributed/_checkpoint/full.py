"""State dicts with whole tables, in memory of one rank."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn

from neuroshard._group.agreement import rank_of, require_same, size_of
from neuroshard.distributed._checkpoint.row_orders import SUFFIX, by_id, is_order
from neuroshard.distributed._checkpoint.sharded import Chunk, Sharded


def full_state_dict(module: nn.Module, *, rank: int = 0,
                    process_group: dist.ProcessGroup | None = None) -> dict[str, Tensor]:
    """The state_dict() of a module with sharded tables as one of whole tensors in memory of the host, on
    one rank of process_group (None: the default one); {} on the others. torch.save writes it, and load_state_dict() of
    any plan, of TorchRec and of torch read what they know of it. Tables are by id, also where the module has an order
    of rows.

    All ranks of the group call it with the same `rank`. Raises a ValueError if that is not one of them, and a
    GroupError if ranks differ in it. Tables come one after the other, so that only `rank` needs memory for all of
    them, and the others for their part of one."""
    require_same({"argument rank": str(rank)}, process_group,
                 "all ranks must call full_state_dict() with the one that gets the state dict")
    size, own = size_of(process_group), rank_of(process_group)
    if not 0 <= rank < size:
        raise ValueError(f"rank: expected a rank of the group of {size}, found {rank}")
    whole: dict[str, Tensor] = {}
    state = module.state_dict()
    orders = {key.removesuffix(SUFFIX): value for key, value in state.items() if is_order(key, state)}
    for key, value in state.items():
        if is_order(key, state):
            continue
        if isinstance(value, Sharded):
            value = joined(value, rank, process_group)
            for table, order in orders.items():
                if value is not None and key.startswith(f"{table}."):
                    value = by_id(value, order)
        if own == rank:
            whole[key] = value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
    return whole


def joined(value: Sharded, rank: int, group: dist.ProcessGroup | None) -> Tensor | None:
    """The whole tensor on one rank."""
    own = [Chunk(chunk.offsets, chunk.tensor.cpu().contiguous()) for chunk in value.chunks if chunk.written]
    everyone: list[list[Chunk]] = [own]
    if size_of(group) > 1:
        everyone = [[] for _ in range(size_of(group))]
        dist.gather_object(own, everyone if rank_of(group) == rank else None, group=group,
                           group_dst=rank)
    if rank_of(group) != rank:
        return None
    whole = torch.empty(value.size(), dtype=value.dtype)
    for chunks in everyone:
        for chunk in chunks:
            place = tuple(slice(begin, begin + count)
                          for begin, count in zip(chunk.offsets, chunk.tensor.shape))
            whole[place] = chunk.tensor
    return whole
