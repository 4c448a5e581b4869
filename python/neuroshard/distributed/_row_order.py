"""The rows of ids where tables keep them in another order than ids, as by use: the argument row_order of the modules."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence

import torch

from neuroshard import _fields
from neuroshard._jagged import Jagged
from neuroshard.problem import ShardingProblem

Orders = dict[str, torch.Tensor]


def read_orders(given: object) -> object:
    """The tensors of a file that `neuroshard profile --reorder` wrote; what is no path stays as it is. Raises a
    ValueError for a file that is none."""
    if not isinstance(given, (str, os.PathLike)):
        return given
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    path = _fields.path(given, "row_order")
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"row_order: {os.fspath(path)}: expected a file of neuroshard profile --reorder ({error})") from None


def check_orders(given: object, problem: ShardingProblem, dynamic: Mapping[str, object]) -> Orders:
    """The row of each id, by table, in the order of the problem. dynamic: tables with dynamic ids. Raises a TypeError
    or ValueError for what is none."""
    given = read_orders({} if given is None else given)
    if not isinstance(given, Mapping):
        raise TypeError("row_order: expected a file of neuroshard profile --reorder or a dict with the row of each id "
                        f"for each table that has one, found {_fields.shown(given)}")
    tables = {table.name: table for table in problem.tables}
    for name, order in given.items():
        if name not in tables:
            raise ValueError(f"row_order: expected tables of {', '.join(tables)}, found {_fields.shown(name)}")
        if name in dynamic:
            raise ValueError(f"row_order: table \"{name}\" has dynamic ids, which get rows as they are seen; expected "
                             "tables without")
        rows = tables[name].rows
        if not isinstance(order, torch.Tensor) or order.dtype not in (torch.int32, torch.int64) \
                or order.shape != (rows,) or not is_permutation(order):
            raise ValueError(f"row_order: table \"{name}\": expected a tensor of int64 or int32 that has each of {rows} "
                             f"rows once, found {shown(order)}")
    return {name: given[name].detach().to("cpu", torch.int64 if tables[name].rows > 2**31 else torch.int32)
            for name in tables if name in given}


def is_permutation(order: torch.Tensor) -> bool:
    rows = order.shape[0]
    if bool(((order < 0) | (order >= rows)).any()):
        return False
    seen = torch.zeros(rows, dtype=torch.bool)
    seen[order.cpu().long()] = True
    return bool(seen.all())


def shown(order: object) -> str:
    if not isinstance(order, torch.Tensor):
        return _fields.shown(order)
    return f"a tensor of {order.dtype} with shape {list(order.shape)}" + \
        (" that lacks some" if order.dim() == 1 else "")


def digest_of(orders: Orders) -> str:
    """The same on all ranks if these have the same orders."""
    digest = hashlib.sha256()
    for name, order in orders.items():
        digest.update(name.encode())
        digest.update(order.numpy())
    return digest.hexdigest()[:16] if orders else "none"


class RowOrder:
    """Puts rows in place of ids before they are sent."""

    def __init__(self, orders: Orders) -> None:
        """orders: as check_orders() gives them. use() comes before all else."""
        self.orders = orders

    def use(self, tables: Sequence[str]) -> None:
        """tables: of each feature of the input."""
        rows = [self.orders[name].shape[0] if name in self.orders else 0 for name in tables]
        begins, begin = {}, 0
        for name, order in self.orders.items():
            begins[name], begin = begin, begin + order.shape[0]
        # Of all tables one after the other; by feature: where its table's begin, and how many there are.
        parts = list(self.orders.values())
        self._rows = torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int32)
        self._begins = torch.tensor([begins.get(name, 0) for name in tables], dtype=torch.int64)
        self._counts = torch.tensor(rows, dtype=torch.int64)

    def apply(self, ids: Jagged) -> Jagged:
        """ids: as operators take them. Ids that no row has stay as they are, and so do ids with wrong offsets: the step
        refuses them."""
        if not self.orders or ids.ids.dim() != 1 or ids.offsets.dim() != 1:
            return ids
        features = self._counts.shape[0]
        bags = (ids.offsets.shape[0] - 1) // features
        if bags <= 0:
            return ids
        if self._rows.device != ids.ids.device:
            self._rows, self._begins, self._counts = (one.to(ids.ids.device) for one in
                                                      (self._rows, self._begins, self._counts))
        places = torch.arange(ids.ids.shape[0], device=ids.ids.device)
        feature = torch.searchsorted(ids.offsets[bags::bags].contiguous(), places, right=True).clamp(max=features - 1)
        is_known = (ids.ids >= 0) & (ids.ids < self._counts[feature])
        rows = self._rows[torch.where(is_known, self._begins[feature] + ids.ids, 0)]
        return ids._replace(ids=torch.where(is_known, rows.to(ids.ids.dtype), ids.ids))
