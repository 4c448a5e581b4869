"""When the gradients of backwards become an update of tables."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import torch

from neuroshard import _fields
from neuroshard.distributed._engine import Engine
from neuroshard.distributed._optimizer import FusedOptimizer

UPDATE_AT = ("backward", "step")


class UpdateArguments:
    """The arguments of modules that say when they update; raises a TypeError or ValueError for what are
    none."""

    def __init__(self, update_at: object, update_every: object, grad_scaler: object) -> None:
        if update_at not in UPDATE_AT:
            raise ValueError(f"update_at: expected \"backward\" or \"step\", found "
                             f"{_fields.shown(update_at)}")
        self.at = update_at
        self.every = _fields.whole(update_every, "update_every")
        if self.every < 1:
            raise ValueError(f"update_every: expected a number from 1, found {update_every}")
        if self.every > 1 and self.at == "step":
            raise ValueError("update_every: expected 1 with update_at=\"step\", where tables.optimizer.step() "
                             f"says when to update, found {update_every}")
        if grad_scaler is not None and not isinstance(grad_scaler, torch.amp.GradScaler):
            raise TypeError("grad_scaler: expected a torch.amp.GradScaler or None, found "
                            f"{_fields.shown(grad_scaler)}")
        self.scaler = grad_scaler


class UpdateSettings(NamedTuple):
    """When a rank updates, as it tells others. division: whether gradients are divided by the number of
    ranks. scaled: whether a GradScaler scales the loss."""

    at: str
    every: int
    division: bool
    frozen: frozenset[str]
    scaled: bool


class Ranks(Protocol):
    """Those that update together. size: how many."""

    size: int

    def all_ranks(self, value: bool) -> bool:
        """Whether it is true on all of them."""

    def total(self, value: float) -> float:
        """The sum over all of them."""


class OneRank:
    """No others."""

    size = 1

    def all_ranks(self, value: bool) -> bool:
        return value

    def total(self, value: float) -> float:
        return value


class Updates:
    """Decides for each backward whether it updates the tables or leaves its gradients to a later one.
    All ranks must decide alike; a rank that does not is an error at the next lookup."""

    def __init__(self, arguments: UpdateArguments, optimizer: FusedOptimizer, division: bool) -> None:
        """division: of gradients by the number of ranks. use() comes before all else."""
        self._arguments, self._optimizer, self._division = arguments, optimizer, division
        self._frozen: frozenset[str] = frozenset()
        self._blocks = 0
        self._count = 0  # backwards that wait for an update
        self._keeps = self._overflowed = self._is_checked = self._is_clipped = False
        optimizer.on_step = self._update if arguments.at == "step" else None
        optimizer.on_zero_grad = self._drop

    @classmethod
    def joining(cls, settings: UpdateSettings, optimizer: FusedOptimizer,
                scaler: torch.amp.GradScaler | None) -> Updates:
        """Those of a rank that joins others."""
        updates = cls(UpdateArguments(settings.at, settings.every, scaler), optimizer, settings.division)
        updates._frozen = settings.frozen
        return updates

    @property
    def settings(self) -> UpdateSettings:
        arguments = self._arguments
        return UpdateSettings(arguments.at, arguments.every, self._division, self._frozen,
                              arguments.scaler is not None)

    def use(self, engine: Engine, tables: Sequence[str], ranks: Ranks) -> None:
        """Goes on with the tables of an engine, in the order of its artifact."""
        self._engine, self._tables, self._ranks = engine, tuple(tables), ranks
        self._set_frozen(self._frozen)

    def gradient_settings(self) -> list[float]:
        """Of the backward that begins, as torch.ops.neuroshard.gradient_settings gives them."""
        if self._is_clipped:
            raise ValueError("the norm of the gradients that wait was taken: update by them with "
                             "tables.optimizer.step(), or drop them with zero_grad(), before there are others")
        scaler = self._arguments.scaler
        scale = scaler.get_scale() if scaler is not None and scaler.is_enabled() else 1.0
        rates = self.rates()
        self._count += 1
        self._keeps = (self._blocks > 0 or self._arguments.at == "step"
                       or self._count < self._arguments.every)
        if not self._keeps:
            self._count = 0
        division = self._ranks.size if self._division else 1
        return [1 / (division * scale), float(self._keeps), float(scaler is not None), *rates]

    def are_finite_everywhere(self, finite: bool) -> bool:
        """Whether the gradients of this backward may count: not if those of some rank, now or since the
        last update, were not finite."""
        everywhere = self._ranks.all_ranks(finite)
        self._optimizer.note(everywhere, is_first=not self._is_checked)
        self._overflowed |= not everywhere
        self._is_checked = True
        count = not self._overflowed
        if not self._keeps:
            self._begin()
        return count

    def rates(self) -> list[float]:
        return self._optimizer.rates_of(self._tables, self._frozen)

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        with self.no_sync():
            try:
                yield
            except BaseException:
                with contextlib.suppress(ValueError):  # the block has closed the tables
                    self._drop()
                raise
        if self._blocks == 0 and self._arguments.at == "backward":
            self._update()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        self._blocks += 1
        try:
            yield
        finally:
            self._blocks -= 1

    def clip_norm(self, most: float, parameters: torch.Tensor | Iterable[torch.Tensor]) -> torch.Tensor:
        """As Learning.clip_grad_norm_()."""
        if most != math.inf:  # which asks for the norm alone
            most = _fields.number(most, "max_norm")
        if not most >= 0:
            raise ValueError(f"max_norm: expected a number from 0, found {most}")
        if self._arguments.at != "step" and not self._blocks:
            raise ValueError("clip_grad_norm_ needs gradients that wait for an update: make the tables with "
                             "update_at=\"step\", or call it in a block of accumulate()")
        if isinstance(parameters, torch.Tensor):
            parameters = [parameters]
        dense = [one for one in parameters if one.grad is not None]
        own = self._engine.squared_norm()
        self._is_clipped = True
        squared = self._ranks.total(own)
        of_dense = torch.nn.utils.get_total_norm([one.grad for one in dense])
        total = (of_dense.double().square() + squared).sqrt().float()
        torch.nn.utils.clip_grads_with_norm_(dense, most, total)
        self._engine.scale_kept(min(1.0, most / (float(total) + 1e-6)) if math.isfinite(total) else 0.0)
        return total

    @property
    def frozen(self) -> tuple[str, ...]:
        return tuple(name for name in self._tables if name in self._frozen)

    def freeze(self, names: Sequence[str]) -> None:
        self._set_frozen(self._frozen | self._check(names))

    def unfreeze(self, names: Sequence[str]) -> None:
        self._set_frozen(self._frozen - self._check(names))

    def _set_frozen(self, names: frozenset[str]) -> None:
        if self._count and names != self._frozen:
            raise ValueError("gradients wait for an update, which has those of the same tables from all of its "
                             "backwards: update by them, or drop them with zero_grad(), before tables are frozen "
                             "or unfrozen")
        self._engine.freeze([number for number, name in enumerate(self._tables) if name in names])
        self._frozen = names

    def _check(self, names: Sequence[str]) -> frozenset[str]:
        for name in names:
            if name not in self._tables:
                raise ValueError(f"expected tables of {', '.join(self._tables)}, found {_fields.shown(name)}")
        return frozenset(names or self._tables)

    def average_copies(self) -> None:
        self._engine.average_copies()

    def _update(self) -> None:
        self._engine.update_kept(self.rates())
        self._begin()

    def _drop(self) -> None:
        if self._count:
            self._engine.drop_kept()
        self._begin()

    def _begin(self) -> None:
        """An update that no gradients belong to yet."""
        self._count = 0
        self._overflowed = self._is_checked = self._is_clipped = False
