"""A collection in a model whose tables are part of one module for all collections."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from neuroshard._fields import shown
from neuroshard.distributed._caches import CacheFigures
from neuroshard.distributed._dynamic_ids.id_table import IdTable
from neuroshard.distributed._modules.forwards import Forwards
from neuroshard.distributed._modules.joint import JointTables
from neuroshard.distributed._modules.members import Member, own_plan, own_problem
from neuroshard.distributed._optimizer import FusedOptimizer
from neuroshard.distributed._row_order import RowOrder
from neuroshard.distributed._shards import LocalShard
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem


class CollectionView(torch.nn.Module):
    """In the place of a collection of a model, as shard_model() puts it there: takes and gives what the
    collection does, and has its part of the state dict. Its tables have the collection's own names.

    tables: all tables of the model, whose names are those of the problem, and whose steps, updates, learning
    rates and plan are for all collections."""

    def __init__(self, tables: JointTables, member: Member, forwards: Forwards) -> None:
        super().__init__()
        self.__dict__["tables"] = tables  # no submodule, so that no state dict has it again
        self.member, self.path = member, member.path
        self.tables_key = "embedding_bags" if member.pooled else "embeddings"
        self._forwards, self._is_frozen = forwards, False
        self._named_state: tuple[object, Any] | None = None  # of a session

    def forward(self, features: object) -> object:
        """features, results: as of ShardedEmbeddingBagCollection or ShardedEmbeddingCollection."""
        if isinstance(features, torch.fx.Proxy):  # symbolic tracing, as by TorchRec's pipelines
            return features.tracer.create_proxy("call_module", features.tracer.path_of_module(self),
                                                (features,), {})
        return self._forwards.call(self, features)

    @property
    def learns(self) -> bool:
        """Whether backwards update its tables."""
        return self.training and not self._is_frozen

    def forget_forward(self) -> None:
        """Lets go of the model's last forward."""
        self._forwards.forget()

    @property
    def is_trained_now(self) -> bool:
        return self.learns and torch.is_grad_enabled()

    def requires_grad_(self, requires_grad: bool = True) -> CollectionView:
        """Freezes its tables (False), or lets them learn again; called alike on all ranks. freeze() also
        saves the exchange of their gradients."""
        self._is_frozen = not requires_grad
        return super().requires_grad_(requires_grad)

    # Its part of the tables

    @property
    def plan(self) -> Plan:
        return own_plan(self.member, self.tables.plan)

    @property
    def problem(self) -> ShardingProblem:
        return own_problem(self.member, self.tables.problem)

    @property
    def process_group(self) -> dist.ProcessGroup | None:
        return self.tables.process_group

    @property
    def features(self) -> tuple[str, ...]:
        """The features in the order of a Jagged."""
        return tuple(self.member.features.values())

    def local_shards(self) -> tuple[LocalShard, ...]:
        """This rank's shards, as those of ShardedEmbeddingBagCollection."""
        return tuple(dataclasses.replace(one, table=self.member.tables[one.table])
                     for one in self.tables.local_shards() if one.table in self.member.tables)

    def caches(self) -> dict[str, CacheFigures]:
        own = {one.name for one in self.tables.plan.shards if one.table in self.member.tables}
        return {name: one for name, one in self.tables.caches().items() if name in own}

    @property
    def dynamic_ids(self) -> dict[str, IdTable]:
        """The maps of its tables with dynamic ids: this rank's parts."""
        return {self.member.tables[name]: one for name, one in self.tables.dynamic_ids.items()
                if name in self.member.tables}

    @property
    def _row_order(self) -> RowOrder:
        return RowOrder({self.member.tables[name]: order for name, order in self.tables._row_order.orders.items()
                         if name in self.member.tables})

    @property
    def _sent_ahead(self) -> Any:
        return self.tables._sent_ahead

    def freeze(self, *tables: str) -> None:
        """As freeze() of ShardedEmbeddingBagCollection, of its own tables."""
        self.tables.freeze(*self._names(tables))

    def unfreeze(self, *tables: str) -> None:
        self.tables.unfreeze(*self._names(tables))

    @property
    def frozen(self) -> tuple[str, ...]:
        """Its tables that updates leave as they are."""
        return tuple(self.member.tables[name] for name in self.tables.frozen if name in self.member.tables)

    def _names(self, own: Sequence[str]) -> list[str]:
        """In the problem of all; of all its tables if none is named."""
        by_own = {name: whole for whole, name in self.member.tables.items()}
        for name in own:
            if name not in by_own:
                raise ValueError(f"expected tables of {', '.join(by_own)}, found {shown(name)}")
        return [by_own[name] for name in own or by_own]

    # What is one for all collections

    @property
    def optimizer(self) -> FusedOptimizer:
        """That of the tables of all collections."""
        return self.tables.optimizer

    @property
    def step(self) -> int:
        """Updates of all collections so far."""
        return self.tables.step

    @step.setter
    def step(self, count: int) -> None:
        self.tables.step = count

    @property
    def learning_rates(self) -> list[float]:
        """Of each group that has tables of this collection."""
        return [self.optimizer.learning_rates[index] for index in self._groups()]

    @property
    def learning_rate(self) -> float:
        return self.learning_rates[0]

    def set_learning_rate(self, rate: float | Sequence[float]) -> None:
        """Of these groups: one, or one for each. Groups may have tables of other collections, too."""
        rates = list(rate) if isinstance(rate, (list, tuple)) else [rate]
        groups = self._groups()
        if len(rates) not in (1, len(groups)):
            raise ValueError(f"learning_rate: expected 1 or {len(groups)}, as there are groups of tables, found "
                             f"{len(rates)}")
        every = list(self.optimizer.learning_rates)
        for number, index in enumerate(groups):
            every[index] = rates[number % len(rates)]
        self.tables.set_learning_rate(every)

    def _groups(self) -> list[int]:
        return [index for index, group in enumerate(self.optimizer.param_groups)
                if any(name in self.member.tables for name in group["tables"])]

    def accumulate(self) -> Any:
        """A block with one update of the tables of all collections."""
        return self.tables.accumulate()

    def no_sync(self) -> Any:
        return self.tables.no_sync()

    def clip_grad_norm_(self, max_norm: float, parameters: Any = ()) -> torch.Tensor:
        """Of the gradients of all collections."""
        return self.tables.clip_grad_norm_(max_norm, parameters)

    def average_copies(self) -> None:
        """Averages copies that drift, of all collections; called on all ranks."""
        self.tables.average_copies()

    def close(self) -> None:
        """Frees the tables of all collections."""
        self.tables.close()

    # Hooks of nn.Module

    def __getattr__(self, name: str) -> object:
        """Names of the state dict, for torch.distributed.checkpoint.state_dict."""
        from neuroshard.distributed._checkpoint.state import StateNames, state_of
        if name != vars(self).get("tables_key"):
            if not name.startswith("_") and hasattr(type(vars(self).get("tables")), name):
                raise AttributeError(f"the module at \"{self.path}\" has no '{name}' of its own, which is for the tables "
                                     f"of all collections together: use its .tables.{name}, or, to move them to another "
                                     "plan, neuroshard.distributed.reshard_model()")
            return super().__getattr__(name)
        if self._named_state is None or self._named_state[0] is not self.tables._session:
            self._named_state = self.tables._session, StateNames(state_of(self))
        return getattr(self._named_state[1], name)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        from neuroshard.distributed._checkpoint.state import saved_state_of
        for key, value in saved_state_of(self).items():
            destination[prefix + key] = value

    def _load_from_state_dict(self, state_dict: Mapping, prefix: str, local_metadata: object, strict: bool,
                              missing_keys: list, unexpected_keys: list, error_msgs: list) -> None:
        from neuroshard.distributed._checkpoint.state import load_from_state_dict
        load_from_state_dict(self, state_dict, prefix, strict, missing_keys, unexpected_keys, error_msgs)

    def __reduce_ex__(self, protocol: int) -> object:
        """Refused: a copy would share, or lack, the tables and the process group."""
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled; make another model by shard_model, and "
                        "load its state_dict()")

    def extra_repr(self) -> str:
        return f"{self.path}, {len(self.member.tables)} of {len(self.tables.problem.tables)} tables"


def by_tables(ids: Mapping[Any, Callable[[Any], object]]) -> Mapping[Any, Callable[[Any], object]]:
    """The argument of pipeline() with the tables of views in place of these."""
    views = [one for one in ids if isinstance(one, CollectionView)]
    if not views:
        return ids
    made: dict[Any, Callable[[Any], object]] = {}
    for module, function in ids.items():
        if not isinstance(module, CollectionView):
            made[module] = function
        elif module.tables not in made:
            own = {one.path: ids[one] for one in views if one.tables is module.tables}
            if missing := sorted(set(module.tables.member_of) - set(own)):
                raise ValueError(f"pipeline: expected ids of all collections that shard_model has made, as they share a "
                                 f"step; there are none of {', '.join(missing)}")
            made[module.tables] = lambda batch, own=own: {path: one(batch) for path, one in own.items()}
    return made
