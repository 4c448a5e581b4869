"""All tables of a model's collections as one module, whose steps are for any of them."""

from __future__ import annotations

import functools
import weakref
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch

from neuroshard import _fields
from neuroshard._jagged import Jagged
from neuroshard.distributed._collection import _Sharded
from neuroshard.distributed._distinct_ids import Sent
from neuroshard.distributed._dynamic_ids.translation import Ahead
from neuroshard.distributed._inputs import as_tensors, require_mode, require_values
from neuroshard.distributed._modules.joint_updates import Backward, JointUpdates
from neuroshard.distributed._modules.members import Call, Member, join
from neuroshard.distributed._outputs import make_jagged_tensors, make_keyed, split_rows
from neuroshard.distributed._pending import Pending
from neuroshard.distributed._session import Session
from neuroshard.errors import TensorError
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

if TYPE_CHECKING:
    from neuroshard.distributed._reshard.meeting import Source

Calls = Sequence[Call | None]  # of each member


class Mode(Protocol):
    """A module in the model that reads the tables."""

    path: str

    @property
    def learns(self) -> bool: ...

    @property
    def is_trained_now(self) -> bool: ...

    @property
    def dynamic_ids(self) -> Mapping[str, object]: ...

    def forget_forward(self) -> None: ...


class Results(dict[str, object]):
    """What each collection returns, by path. calls: what they were given. tensors: of all lookups. backward: None
    where nothing learns."""

    def __init__(self, outputs: Mapping[str, object], calls: Calls, tensors: Sequence[torch.Tensor],
                 backward: Backward | None) -> None:
        super().__init__(outputs)
        self.calls, self.tensors, self.backward = calls, tensors, backward


class JointTables(_Sharded):
    """The tables of all collections of a model, as shard_model() makes them. Called with {path: features}, of
    all collections or of some, it makes one step for them, and gives {path: results}. Methods and properties
    are those of ShardedEmbeddingBagCollection; tables have their names in the problem of all."""

    _policy = JointUpdates

    def __init__(self, members: Sequence[Member], plan: Plan, problem: ShardingProblem, **options: Any) -> None:
        object.__setattr__(self, "members", tuple(members))
        object.__setattr__(self, "views", ())
        super().__init__(plan, problem, **options)
        self._called = [True] * len(members)  # by the step whose ids were checked last
        self.member_of = {member.path: member for member in members}

    def use_views(self, views: Iterable[Mode]) -> None:
        """The modules whose modes are those of steps."""
        object.__setattr__(self, "views", tuple(views))

    def _check_features(self, problem: ShardingProblem) -> None:
        self._unpooled = any(feature.pooling == "none" for feature in problem.features)

    def _take(self, session: Session, plan: Plan, problem: ShardingProblem) -> None:
        super()._take(session, plan, problem)
        for member in self.members:
            member.place(session.input)

    def ids_ahead(self) -> dict[str, object]:
        """The ids by path that pipeline() has sent for this step; empty without."""
        ids = self._sent_ahead.current() if self._sent_ahead else None
        return dict(ids) if isinstance(ids, Mapping) and set(ids) <= set(self.member_of) else {}

    def looked_up_apart(self) -> set[str]:
        """The views whose dynamic ids must not become rows, while others learn."""
        if not any(view.is_trained_now for view in self.views):
            return set()
        return {view.path for view in self.views if not view.is_trained_now and view.dynamic_ids}

    def _source(self) -> Source:
        self._forget_forwards()
        return super()._source()

    def close(self) -> None:
        self._forget_forwards()
        super().close()

    def _forget_forwards(self) -> None:
        for view in self.views:
            view.forget_forward()

    def _learns(self) -> bool:
        called = [view for view, is_called in zip(self.views, self._called) if is_called]
        is_trained = any(view.learns for view in called) if self.views else self.training
        return torch.is_grad_enabled() and is_trained and not self._frozen

    # A step

    def _checked(self, features: object) -> tuple[Jagged, Calls]:
        self._called = [not isinstance(features, Mapping) or path in features for path in self.member_of]
        require_mode(self._learns(), self.problem.mode)
        calls = self._calls_of(features)
        ids = self._joined(calls)
        require_values(ids, self._learns() and not torch.compiler.is_compiling(), self._session.input.name)
        return ids, calls

    def _calls_of(self, features: object) -> Calls:
        if not isinstance(features, Mapping) or not features:
            raise TensorError(f"expected {{path: features}} with paths of {', '.join(self.member_of)}, found "
                              f"{_fields.shown(features)}")
        for path in features:
            if path not in self.member_of:
                raise TensorError(f"expected collections of {', '.join(self.member_of)}, found {_fields.shown(path)}")
        return [member.call_of(features[member.path]) if member.path in features else None
                for member in self.members]

    def _joined(self, calls: Calls, counts: bool = True) -> Jagged:
        expected = self._session.input
        ids = as_tensors(join(self.members, calls, expected.weighted), expected)
        return self._row_order.apply(self._out_of_range.apply(ids, counts))

    def _as_jagged(self, features: object, counts: bool = True) -> Jagged:
        return self._joined(self._calls_of(features), counts)

    def _start(self, ids: Jagged, keyed: Calls, ahead: Ahead | None = None) -> Pending:
        self._note_purpose([call is not None for call in keyed])
        return super()._start(ids, keyed, ahead)

    def _refuse(self, text: str) -> None:
        self._note_purpose(self._called)
        super()._refuse(text)

    def _note_purpose(self, called: Sequence[bool]) -> None:
        """Ranks that look rows up for others are told so."""
        if not torch.compiler.is_compiling():
            self._engine.note_purpose(zlib.crc32(bytes(called)))

    def _finish(self, ticket: torch.Tensor, sent: Sent, keyed: Calls,
                anchor: torch.Tensor | None) -> Mapping[str, object]:
        self._called = [call is not None for call in keyed]
        learns = self._learns()
        is_apart = learns and anchor is not None
        rows = self._engine.wait(ticket, sent.ids, updates=not is_apart, joined=False,
                                 anchor=anchor if is_apart else self._anchor if learns else None)
        results = sent.all_rows(rows, self._session.results)
        outputs = {member.path: self.output(member, call, results)
                   for member, call in zip(self.members, keyed) if call is not None}
        if torch.compiler.is_compiling():
            return outputs
        return Results(outputs, keyed, results, self._watch(keyed, results) if learns else None)

    def _watch(self, calls: Calls, results: Sequence[torch.Tensor]) -> Backward:
        """Lets the backward know which members' results have gradients."""
        backward = Backward({member.path: tuple(member.tables) for member in self.members})
        for member, call in zip(self.members, calls):
            if call is None:
                continue
            own = [one for one, lookup in zip(results, self._session.results) if member.has(lookup.feature)]
            # A KeyedTensor has gradients of all of them, or of none.
            for one in own[:1] if member.pooled and call.keyed else own:
                one.register_hook(functools.partial(_note_gradient, weakref.ref(self._updates), backward, member.path))
        return backward

    def own_results(self, member: Member, call: Call, results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Those of a member, with a row for each of its bags."""
        lookups = self._session.results
        own = [(one, lookup) for one, lookup in zip(results, lookups)
               if member.has(lookup.feature)]
        return [one[:call.batches[lookup.feature - member.first]]
                if lookup.pooled and one.shape[0] != call.batches[lookup.feature - member.first] else one
                for one, lookup in own]

    def output(self, member: Member, call: Call, results: Sequence[torch.Tensor]) -> object:
        """What the collection returns. results: of all lookups."""
        own = self.own_results(member, call, results)
        names = member.input.features
        lookups = [one for one in self._session.results
                   if member.has(one.feature)]
        if member.pooled:
            if call.ids.inverse is not None:
                own = [one.index_select(0, call.ids.inverse[lookup.feature - member.first])
                       for one, lookup in zip(own, lookups)]
            if not call.keyed:
                return dict(zip(names, own))
            return make_keyed(names, [one.dim for one in lookups], own)
        offsets = split_rows(call.ids, member.count)
        rows = {names[lookup.feature - member.first]: (one, offsets[lookup.feature - member.first])
                for one, lookup in zip(own, lookups)}
        return make_jagged_tensors(rows) if call.keyed else rows


def _note_gradient(updates: weakref.ref[JointUpdates], backward: Backward, path: str,
                   gradient: torch.Tensor | None) -> None:
    """A hook of results, which outlives the tables where the caller keeps results."""
    if gradient is not None and (one := updates()):
        one.begin(backward, path)
