"""Orders of rows in a state dict (docs/row-order.md).

embedding_bags.<table>.order has the row of each id, int64 [rows], beside values of the table by row. Whole tensors
without it, as those of TorchRec and of full_state_dict(), are by id.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from neuroshard._table_keys import ORDER

SUFFIX = ORDER


def orders_of(module: Any) -> Mapping[str, Tensor]:
    """The row of each id, by table, of sharded tables; empty without any."""
    return module._row_order.orders if hasattr(module, "_row_order") else {}


def order_state(orders: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """prefix: of the keys of a module's tables. The tensors are copies, as a checkpoint is loaded into them."""
    return {f"{prefix}.{name}{SUFFIX}": order.to(torch.int64, copy=True) for name, order in orders.items()}


def is_order(key: str, state: Container[str]) -> bool:
    """Whether a key of a state dict is of the order of a table's rows."""
    return key.endswith(SUFFIX) and f"{key.removesuffix(SUFFIX)}.weight" in state


def require_same_order(value: Any, own: Tensor) -> None:
    """Raises a ValueError for another order than the module's."""
    if not isinstance(value, Tensor) or value.shape != own.shape or not torch.equal(value.cpu().long(), own):
        raise ValueError("saved with another order of rows; make the module with row_order= of the one that was saved")


def unknown_orders(prefix: str, tables: Iterable[str], own: Iterable[str], given: Iterable[str]) -> list[str]:
    """What is wrong with orders that a module does not have. prefix: of the keys of its tables. own, given: keys."""
    known, there = set(own), set(given)
    return [f"{key}: rows of the table are in this order, and the module has its ids as rows; make it with row_order="
            for name in tables if (key := f"{prefix}.{name}{SUFFIX}") in there and key not in known]


def by_id(values: Tensor, order: Tensor) -> Tensor:
    """Values by id, of those by row."""
    return values[order.to(values.device).long()]


def ids_of_rows(order: Tensor) -> Tensor:
    """The id of each row."""
    ids = torch.empty(order.shape[0], dtype=torch.int64)
    ids[order.long()] = torch.arange(order.shape[0])
    return ids
