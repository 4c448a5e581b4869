"""Takes the map of a table's ids from a checkpoint, of any number of ranks: ids keep their rows. On as many
ranks as have saved it each rank has what it had; on others, ids go to the ranks that own them there, and
free rows are dealt anew."""

from __future__ import annotations

from itertools import accumulate

import torch

from neuroshard._group.agreement import gather, together
from neuroshard.distributed._dynamic_ids.dealing import deal
from neuroshard.distributed._dynamic_ids.exchange import Exchange
from neuroshard.distributed._dynamic_ids.id_table import COUNT, FIELDS, IdTable
from neuroshard.errors import TensorError

ID, ROW, LAST, OWNER = 0, 1, 3, FIELDS  # fields of a saved entry


def adopt(table: IdTable, entries: torch.Tensor, candidates: torch.Tensor, ranks: int,
          batches: int) -> None:
    """All ranks call it together, each with a part of the entries: its rows [n, FIELDS + 1] are an entry
    and the rank that had it. ranks: that have saved them. batches: that were trained."""
    exchange, is_same = table.exchange, ranks == table.exchange.size
    if is_same:
        together(lambda: require_owners(torch.cat([entries, candidates])[:, OWNER], table), exchange.group,
                 "loading the ids of a table")
    used = entries[:, COUNT] > 0
    owners = entries[:, OWNER] if is_same else owners_of(entries, exchange.size)
    if not is_same:
        owners[~used] = dealt(owners[used], int((~used).sum()), exchange)
    own = send(exchange, entries[:, :FIELDS], owners)
    waiting = candidates[candidates[:, COUNT] > 0]
    waiting = send(exchange, waiting[:, :FIELDS],
                   waiting[:, OWNER] if is_same else owners_of(waiting, exchange.size))
    if not is_same:
        waiting = latest(waiting, table)
    rows = own[:, ROW]
    together(lambda: require_rows(rows, table), exchange.group, "loading the ids of a table")
    table.owner.deal(rows.contiguous())
    table.owner.restore(own[own[:, COUNT] > 0].contiguous(), waiting.contiguous(), batches)
    table.begins = [0, *accumulate(gather(rows.shape[0], exchange.group))][:-1]


def owners_of(entries: torch.Tensor, ranks: int) -> torch.Tensor:
    return torch.ops.neuroshard.owners_of_ids(entries[:, ID].contiguous(), ranks)


def dealt(owners: torch.Tensor, free: int, exchange: Exchange) -> torch.Tensor:
    """The ranks that get the free rows of this one's entries. owners: of its ids."""
    mine = torch.bincount(owners, minlength=exchange.size).tolist(), free
    everyone = gather(mine, exchange.group)
    shares = deal([sum(one) for one in zip(*(used for used, _ in everyone))],
                  sum(number for _, number in everyone))
    begin = sum(number for _, number in everyone[:exchange.rank])
    ends = torch.tensor(shares).cumsum(0)
    return torch.searchsorted(ends, torch.arange(begin, begin + free), right=True)


def send(exchange: Exchange, entries: torch.Tensor, owners: torch.Tensor) -> torch.Tensor:
    """The entries of all ranks for this one, by rank and then in their order."""
    order = torch.argsort(owners, stable=True)
    counts, each = torch.bincount(owners, minlength=exchange.size), [1] * exchange.size
    taken = exchange.split(counts, each, each) * FIELDS
    return exchange.split(entries[order].flatten(), (counts * FIELDS).tolist(),
                          taken.tolist()).reshape(-1, FIELDS)


def latest(candidates: torch.Tensor, table: IdTable) -> torch.Tensor:
    """As many candidates as this rank has room for, those that were seen last, in new places."""
    begin, end = table.candidate_range
    order = torch.argsort(candidates[:, LAST], descending=True, stable=True)[:end - begin]
    kept = candidates[order.flip(0)].clone()
    kept[:, ROW] = torch.arange(kept.shape[0])
    return kept


def require_owners(owners: torch.Tensor, table: IdTable) -> None:
    """Raises a TensorError for owners that are no ranks."""
    if owners.numel() and (int(owners.min()) < 0 or int(owners.max()) >= table.exchange.size):
        raise TensorError(f"ids of table \"{table.name}\": expected owners from 0 to {table.exchange.size - 1}, "
                          f"found {int(owners.min())} to {int(owners.max())}")


def require_rows(rows: torch.Tensor, table: IdTable) -> None:
    """Raises a TensorError for rows that ids cannot have."""
    if rows.numel() and (int(rows.min()) < 0 or int(rows.max()) >= table.shared_row
                         or rows.unique().numel() != rows.numel()):
        raise TensorError(f"ids of table \"{table.name}\": expected each row from 0 to {table.shared_row - 1} "
                          "once")
