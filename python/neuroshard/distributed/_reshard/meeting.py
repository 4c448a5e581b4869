"""The ranks that leave a plan and those that come to another one agree on what moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from neuroshard import _fields
from neuroshard._group.agreement import attempt, gather, rank_of
from neuroshard.distributed._dynamic_ids.arguments import DynamicIds
from neuroshard.distributed._updates import UpdateSettings
from neuroshard.errors import GroupError, TensorError
from neuroshard._printable import counted
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

Group = dist.ProcessGroup | None
OUTSIDE = dist.GroupMember.NON_GROUP_MEMBER


class MovingMap(NamedTuple):
    """The map of a table's dynamic ids. batches: that were trained. ranks: of the old plan."""

    policy: DynamicIds
    seed: int
    batches: int
    ranks: int


class Source(NamedTuple):
    """What ranks without tables learn of those that have some."""

    plan: Plan
    problem: ShardingProblem
    step: int
    frozen: bool
    groups: Sequence[Mapping[str, Any]]  # of tables, with their learning rates
    updates: UpdateSettings
    out_of_range: str | int
    distinct_ids: bool
    maps: Mapping[str, MovingMap]  # by table
    row_order: Mapping[str, torch.Tensor]


class Said(NamedTuple):
    """What a rank says when all meet. error: why it cannot; "" if it can. old, new: its device under
    each plan, None if it has none. devices: of the new plan. agreed: what must be equal on all ranks.
    source: from the first device under the old plan."""

    error: str
    old: int | None = None
    new: int | None = None
    devices: int = 0
    agreed: Mapping[str, str] = {}
    source: Source | None = None


@dataclass(frozen=True)
class Meeting:
    """group: that of the ranks that talk. old, new: their devices under each plan."""

    group: Group
    source: Source
    old: Sequence[int | None]
    new: Sequence[int | None]

    @property
    def rank(self) -> int:
        return rank_of(self.group)

    @property
    def size(self) -> int:
        return len(self.old)


def meet(groups: Sequence[Group], prepare: Callable[[], Said]) -> Meeting:
    """Called on all ranks of the groups, of which there is one unless prepare() raises an error. What
    it raises on one rank is raised on all, elsewhere as a GroupError with its text."""
    said, error = attempt(prepare)
    if error:
        said = Said(f"{type(error).__name__}: {error}")
    for group in groups:
        everyone = gather(said, group)
    if error:
        raise error
    for rank, one in enumerate(everyone):
        if one.error:
            raise GroupError(f"rank {rank}: moving to another plan was refused: {one.error}")
    require_agreement(everyone)
    return Meeting(groups[-1], require_complete(everyone),
                   [one.old for one in everyone], [one.new for one in everyone])


def require_agreement(everyone: Sequence[Said]) -> None:
    for name, expected in everyone[0].agreed.items():
        for rank, one in enumerate(everyone):
            if one.agreed[name] != expected:
                raise GroupError(f"rank {rank} has another {name} than rank 0 ({one.agreed[name]}, "
                                 f"not {expected}); all ranks must move to the same plan")


def require_complete(everyone: Sequence[Said]) -> Source:
    """What the first device says of the tables. Raises a GroupError unless all devices of both plans
    are there."""
    source = next((one.source for one in everyone if one.source), None)
    old, new = (sum(one is not None for one in side) for side in
                ([one.old for one in everyone], [one.new for one in everyone]))
    if source is None or old < source.plan.device_count:
        of = f" of {source.plan.device_count}" if source else ""
        raise GroupError(f"{counted(old, 'rank')}{of} came with tables to move; all ranks that have "
                         "some call reshard(), those that have none join_resharded()")
    devices = everyone[0].devices
    if new != devices:
        raise GroupError(f"the plan is for {counted(devices, 'device')}, but the group that takes the "
                         f"tables has {counted(new, 'rank')}")
    return source


def ranks_in(group: Group) -> set[int]:
    """Its ranks in the world; none where this rank is not in it."""
    if group is not None and not isinstance(group, dist.ProcessGroup):
        return set()
    if not dist.is_initialized():
        return {0}
    return set(dist.get_process_group_ranks(group or dist.group.WORLD))


def groups_to_meet(old: Group, new: Group) -> list[Group]:
    """The larger of two groups, of a rank in `old`. If neither has all ranks of the other, both: all
    ranks are then to hear of it."""
    before, after = ranks_in(old), ranks_in(new)
    if after <= before:
        return [old]
    return [new] if before <= after else [old, new]


def check_group(group: object) -> None:
    if group is None or group is OUTSIDE or isinstance(group, dist.ProcessGroup):
        return
    raise TypeError("process_group: expected what torch.distributed.new_group() gives, or None, "
                    f"found {_fields.shown(group)}")


def require_one_group(groups: Sequence[Group]) -> None:
    if len(groups) > 1:
        raise ValueError("the groups of the old and of the new plan overlap in part; move to a group "
                         "that has all ranks of both first, or to a part of the old one")


def require_same_model(old: ShardingProblem, new: ShardingProblem) -> None:
    """Raises a TensorError if tables, features or types differ; statistics, batch size and devices
    may."""
    for what, before, after in (
            ("tables", tables_of(old), tables_of(new)),
            ("features", features_of(old), features_of(new)),
            ("types", types_of(old), types_of(new))):
        odd = next((name for name in [*before, *after] if before.get(name) != after.get(name)), None)
        if odd is not None:
            raise TensorError(f"the new problem must have the same {what}: {odd} is "
                              f"{told(before.get(odd))} in use and {told(after.get(odd))} in it")
        if list(before) != list(after) and what == "features":
            raise TensorError("the new problem must have the same features in the same order: they are "
                              f"{', '.join(before)} in use and {', '.join(after)} in it")


def types_of(problem: ShardingProblem) -> dict[str, tuple[object, ...]]:
    return {"that of ids": (problem.batch.id_type,), "that of results": (problem.batch.output_type,)}


def tables_of(problem: ShardingProblem) -> dict[str, tuple[object, ...]]:
    return {f"table '{one.name}'": (f"{one.rows} x {one.dim}", one.type, one.optimizer)
            for one in problem.tables}


def features_of(problem: ShardingProblem) -> dict[str, tuple[object, ...]]:
    return {f"feature '{one.name}'": (
        f"of table '{one.table}'", f"pooling {one.pooling}",
        "with weights" if one.weighted else "without weights",
        *(["which have gradients"] if one.needs_weight_gradient else []))
        for one in problem.features}


def told(values: tuple[object, ...] | None) -> str:
    return "absent" if values is None else ", ".join(map(str, values))
