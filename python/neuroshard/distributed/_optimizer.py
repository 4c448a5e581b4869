"""A torch.optim.Optimizer for tables that backwards update: it holds their learning rates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from neuroshard import _fields

FROZEN = -1.0  # as lib/Runtime takes the rate of a table that no update changes


class FusedOptimizer(torch.optim.Optimizer):
    """Holds the learning rates of tables: param_groups[i]["lr"] is that of param_groups[i]["tables"].

    A backward updates the tables, so step() does nothing, unless the tables were made with
    update_at="step". zero_grad() drops gradients that wait for an update. Schedulers and training loops
    can use it like any optimizer. Checkpoints save the rates with the tables."""

    _checked: tuple[tuple[Any, ...], list[float]] = ((), [])  # the last rates that were valid

    def __init__(self, learning_rate: float | Sequence[Mapping[str, Any]],
                 tables: Sequence[str]) -> None:
        """learning_rate: of all, or groups {"tables": names, "lr": rate}, of which one may leave out
        "tables" for all the others."""
        groups = groups_of(learning_rate, tables)
        flags = [torch.zeros((), dtype=torch.float32, device="cpu", requires_grad=True) for _ in groups]
        super().__init__([{"params": [one], **group} for one, group in zip(flags, groups)], {})
        self.on_step: Callable[[], None] | None = None
        self.on_zero_grad: Callable[[], None] | None = None
        self._flag = flags[0]
        # Keeps schedulers from warning that step() was not called.
        self._opt_called = True

    @property
    def learning_rates(self) -> list[float]:
        """By group."""
        found = tuple(group["lr"] for group in self.param_groups)
        if found != self._checked[0] or not all(type(rate) is float for rate in found):
            self._checked = found, [_fields.learning_rate(rate) for rate in found]
        return self._checked[1]

    @learning_rates.setter
    def learning_rates(self, rates: Sequence[float]) -> None:
        """One for all groups, or one for each."""
        if len(rates) not in (1, len(self.param_groups)):
            raise ValueError(f"learning_rate: expected 1 or {len(self.param_groups)}, as there are groups "
                             f"of tables, found {len(rates)}")
        valid = [_fields.learning_rate(rate) for rate in rates]
        for i, group in enumerate(self.param_groups):
            group["lr"] = valid[i % len(valid)]

    @property
    def groups(self) -> list[dict[str, Any]]:
        """As learning_rate takes them."""
        return [{"tables": list(group["tables"]), "lr": rate}
                for group, rate in zip(self.param_groups, self.learning_rates)]

    def rates_of(self, tables: Sequence[str], frozen: frozenset[str]) -> list[float]:
        """One for all tables, or one for each of these, FROZEN for those that are."""
        rates = self.learning_rates
        if len(rates) == 1 and not frozen:
            return rates
        of_table = {name: rate for group, rate in zip(self.param_groups, rates)
                    for name in group["tables"]}
        return [FROZEN if name in frozen else of_table[name] for name in tables]

    def note(self, finite: bool, is_first: bool) -> None:
        """Lets a GradScaler know whether gradients were finite on all ranks, also those noted since the
        first. One that the tables do not know finds no gradient, which is an error."""
        before = self._flag.grad
        if is_first or before is None or bool(torch.isfinite(before)):
            self._flag.grad = torch.full_like(self._flag, 0.0 if finite else torch.inf)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Refused for all but the groups that the optimizer is made with."""
        if "tables" not in group:
            raise ValueError("expected no further group of parameters: this optimizer is that of tables alone, "
                             "whose groups are those of learning_rate")
        super().add_param_group(group)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises a ValueError for groups of other tables."""
        found = [group.get("tables") for group in state["param_groups"]]
        own = [group["tables"] for group in self.param_groups]
        if found != own:
            raise ValueError(f"expected rates of the groups of tables {own}, found {found}")
        super().load_state_dict(state)

    def step(self, closure=None):
        """Updates the tables if they were made with update_at="step"; else backwards have done it."""
        loss = None
        if closure:
            with torch.enable_grad():
                loss = closure()
        if self.on_step:
            self.on_step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of backwards that wait for an update."""
        self._flag.grad = None
        if self.on_zero_grad:
            self.on_zero_grad()


def groups_of(given: float | Sequence[Mapping[str, Any]],
              tables: Sequence[str]) -> list[dict[str, Any]]:
    """Parameter groups, each table in one. Raises a ValueError for what are none."""
    if not isinstance(given, (list, tuple)):
        return [{"lr": _fields.learning_rate(given), "tables": list(tables)}]
    groups, left = [], dict.fromkeys(tables)
    for group in given:
        if not (isinstance(group, Mapping) and "lr" in group and set(group) <= {"lr", "tables"}):
            raise ValueError("learning_rate: expected a number, or groups {\"tables\": [...], \"lr\": ...}, "
                             f"found {_fields.shown(group)}")
        names = group.get("tables")
        if isinstance(names, str):
            names = [names]
        for name in names or ():
            if name not in left:
                raise ValueError(f"learning_rate: expected each table in one group, found "
                                 f"{_fields.shown(name)}, which " +
                                 ("is in another" if name in tables else "is no table"))
            del left[name]
        groups.append({"lr": _fields.learning_rate(group["lr"]),
                       "tables": None if names is None else list(names)})
    rest = [group for group in groups if group["tables"] is None]
    if len(rest) > 1 or (left and not rest):
        raise ValueError("learning_rate: expected one group without \"tables\", for " +
                         (f"{', '.join(left)}, found none" if not rest else
                          f"all tables of no other group, found {len(rest)}"))
    for group in rest:
        group["tables"] = list(left)
    return groups


class Learning:
    """A module whose tables backwards update."""

    _optimizer: FusedOptimizer
    _updates: Any  # _updates.Updates

    def _require_open(self) -> None:
        """Raises a TensorError if the tables are closed."""
        raise NotImplementedError

    def _send_again(self) -> None:
        """Drops ids that were sent ahead, so that they are sent again."""

    @property
    def optimizer(self) -> FusedOptimizer:
        """The optimizer that holds the learning rates, for schedulers."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """That of the first group of tables."""
        return self._optimizer.learning_rates[0]

    @property
    def learning_rates(self) -> list[float]:
        """Of each group of tables."""
        return self._optimizer.learning_rates

    def set_learning_rate(self, rate: float | Sequence[float]) -> None:
        """Sets the learning rate of all following updates, also of earlier lookups: one, or one for each
        group of tables."""
        self._require_open()
        self._optimizer.learning_rates = rate if isinstance(rate, (list, tuple)) else [rate]

    def accumulate(self):
        """A block whose backwards update the tables once, at its end, by the sum of all their
        gradients: `with tables.accumulate(): ...`. Each row has one update. If the block ends with an
        error, there is none."""
        self._require_open()
        return self._updates.accumulate()

    def no_sync(self):
        """A block whose backwards leave their gradients to the next backward after it, as that of
        DistributedDataParallel does."""
        self._require_open()
        return self._updates.no_sync()

    def clip_grad_norm_(self, max_norm: float,
                        parameters: torch.Tensor | Iterable[torch.Tensor] = ()) -> torch.Tensor:
        """Scales the gradients that wait for an update, and those of `parameters`, so that their norm
        together is at most max_norm, as torch.nn.utils.clip_grad_norm_ does; gives the norm before it.

        That of tables is over all ranks and rows, each with the sum of its gradients. To be called on all
        ranks, of whose parameters the gradients must be equal (as under DistributedDataParallel), with
        update_at="step" before tables.optimizer.step(), or last in a block of accumulate(). A norm
        that is not finite makes gradients of tables zeros."""
        self._require_open()
        return self._updates.clip_norm(max_norm, parameters)

    def average_copies(self) -> None:
        """Averages the weights and optimizer states of copies that drift (Shard.sync_every) now, and not
        only after the next update of that number. To be called on all ranks; needed before state_dict()
        and reshard() after other updates. Does nothing if no copies drift."""
        self._require_open()
        self._updates.average_copies()

    def freeze(self, *tables: str) -> None:
        """Lets updates leave these tables as they are; all of them if none is named. Their gradients do not
        travel in steps whose lookup comes after it, unless ids have sample weights. To be called alike on all
        ranks, as unfreeze(), which the next lookup checks; not while gradients wait for an update
        (ValueError)."""
        self._require_open()
        self._updates.freeze(tables)
        self._send_again()

    def unfreeze(self, *tables: str) -> None:
        """Lets updates change these tables again, from the next lookup on; all of them if none is named."""
        self._require_open()
        self._updates.unfreeze(tables)
        self._send_again()

    @property
    def frozen(self) -> tuple[str, ...]:
        """The tables that updates leave as they are."""
        return self._updates.frozen

