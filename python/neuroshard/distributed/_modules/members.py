"""The collections of a model as members of one step for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from neuroshard._jagged import (Jagged, as_jagged, check_ends, is_keyed, pick_features, with_offsets,
                                without_unread_weights)
from neuroshard._model_names import key_of
from neuroshard.constraints import Constraints
from neuroshard.distributed._inputs import Input, name_of
from neuroshard.distributed._modules.found import Part
from neuroshard.errors import TensorError
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem


@dataclass
class Member:
    """One collection. tables, features: its own names by those in the problem. index: among all members.
    input: what it is called with. first: its first feature in the input of all."""

    path: str
    index: int
    pooled: bool
    weighted: bool
    tables: dict[str, str]
    features: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)  # in a batch, by own name
    input: Input | None = None
    first: int = 0

    def place(self, whole: Input) -> None:
        """Finds the features in the input of all."""
        names = tuple(self.features)
        self.first = whole.features.index(names[0])
        assert whole.features[self.first:self.first + len(names)] == names
        own = tuple(self.features.values())
        self.input = Input(self.path, f"{self.path}: {name_of(list(own))}", own, not self.pooled,
                           self.weighted, whole.id_dtype)

    @property
    def count(self) -> int:
        return len(self.features)

    def has(self, feature: int) -> bool:
        """Whether a feature of the input of all is its own."""
        return self.first <= feature < self.first + self.count

    def call_of(self, features: object) -> Call:
        """What forward() was given, as tensors. Raises a TensorError for what does not fit."""
        keyed, where = is_keyed(features), f"input \"{self.input.name}\""
        ids = with_offsets(as_jagged(pick_features(features, self.input, self.keys), self.input), self.input)
        if self.pooled and keyed and ids.batches is not None and ids.inverse is None:
            raise TensorError(f"{self.path}: expected features of one batch, or inverse indices, found a "
                              f"KeyedJaggedTensor with batches of {list(ids.batches)}: a KeyedTensor has a row of "
                              "each feature for each sample")
        for what, value in zip(("ids", "offsets", "weights"), ids):
            if value is not None and value.dim() != 1:
                raise TensorError(f"{where}: expected {what} of one dimension, found shape "
                                  f"{list(value.shape)}")
        if not self.weighted:
            ids = without_unread_weights(ids, features, where)
        elif ids.weights is None or ids.weights.shape != ids.ids.shape:
            raise TensorError(f"{where}: weights: expected one for each of the {ids.ids.shape[0]} ids, "
                              f"found {'none' if ids.weights is None else ids.weights.shape[0]}")
        bags = ids.offsets.shape[0] - 1
        if ids.batches is None and (bags < 0 or bags % self.count):
            raise TensorError(f"{where}: offsets: expected {self.count} features * batch + 1 values, found "
                              f"{bags + 1}")
        check_ends(ids.ids, ids.offsets, where)
        batches = ids.batches or [bags // self.count] * self.count
        return Call(ids, keyed, batches)


@dataclass(frozen=True)
class Call:
    """The ids that one member was called with. batches: bags of each feature."""

    ids: Jagged
    keyed: bool
    batches: Sequence[int]


def join(members: Sequence[Member], calls: Sequence[Call | None], weighted: bool) -> Jagged:
    """The ids of all members, one after the other; None: of one that is not called, whose bags are empty.
    weighted: ids without weights get ones, which their lookups do not read."""
    given = [call for call in calls if call is not None]
    first, batch = given[0].ids, given[0].batches[0]
    is_even = all(call.ids.batches is None for call in given) and (
        len(given) == 1 or len({call.batches[0] for call in given}) == 1)
    ids, offsets, weights, batches, end = [], [], [], [], 0
    for member, call in zip(members, calls):
        if call is None:
            empty = batch if is_even else 0
            offsets.append(first.offsets.new_full((member.count * empty,), end))
            batches += [empty] * member.count
            continue
        own = call.ids.offsets[:-1]
        offsets.append(own + end if ids else own)
        ids.append(call.ids.ids)
        if weighted:
            weights.append(torch.ones_like(call.ids.ids, dtype=torch.float32) if call.ids.weights is None
                           else call.ids.weights)
        batches += call.batches
        end = end + call.ids.ids.shape[0]
    offsets.append(first.offsets.new_full((1,), end))
    return Jagged(torch.cat(ids), torch.cat(offsets), torch.cat(weights) if weighted else None, 0, None,
                  None if is_even else batches)


def members_of(parts: Sequence[Part]) -> list[Member]:
    members = []
    for index, part in enumerate(parts):
        features = {part.feature_name(one): one["name"] for one in part.features}
        members.append(Member(
            part.path, index, pooled=part.features[0]["pooling"] != "none",
            weighted=any(one.get("weighted") for one in part.features),
            tables={part.table_name(one["name"]): one["name"] for one in part.tables}, features=features,
            keys={one["name"]: key_of(one["name"], one["table"]) for one in part.features}))
    return members


def in_order(members: Sequence[Member], problem: ShardingProblem) -> ShardingProblem:
    """The problem with the features of each member together, in its order."""
    features = {one.name: one for one in problem.features}
    names = [name for member in members for name in member.features]
    if [one.name for one in problem.features] == names:
        return problem
    return problem.replace(features=[features[name] for name in names])


def own_plan(member: Member, plan: Plan) -> Plan:
    """The shards of a member's tables, under its own names."""
    return plan.replace(table_fingerprint="", provenance=None, shards=[
        one.replace(table=member.tables[one.table], name="") for one in plan.shards if one.table in member.tables])


def own_problem(member: Member, problem: ShardingProblem) -> ShardingProblem:
    """A member's tables and features, under its own names."""
    features = {one.name: one for one in problem.features}
    return problem.replace(
        tables=[problem.table(name).replace(name=own) for name, own in member.tables.items()],
        features=[features[name].replace(name=own, table=member.tables[features[name].table])
                  for name, own in member.features.items()],
        snapshots=(), constraints=Constraints(reserves=problem.constraints.reserves))
