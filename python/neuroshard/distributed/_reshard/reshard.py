"""Moves the tables of an open collection to another plan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch.distributed as dist

from neuroshard import _fields
from neuroshard._group.agreement import gather, rank_of, together
from neuroshard._group.watched_group import watched_group_of
from neuroshard.distributed._dynamic_ids.arguments import check_dynamic_ids
from neuroshard.distributed._dynamic_ids.id_table import IdTable
from neuroshard.distributed._engine import Engine
from neuroshard.distributed._reshard.id_maps import MovedMap, move_maps
from neuroshard.distributed._reshard.meeting import (OUTSIDE, Group, Meeting, Said, Source,
                                                     check_group, groups_to_meet, meet,
                                                     require_one_group, require_same_model)
from neuroshard.distributed._reshard.sides import Side, by_table, move_table
from neuroshard.distributed._reshard.transfer import Transfer
from neuroshard.distributed._session import Session, fingerprints
from neuroshard.errors import GroupError
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem
from neuroshard.topology import Topology


@dataclass(frozen=True)
class Resharded:
    """What moving to another plan took, on every rank the same; lists are by rank of the larger of
    the two groups.

    sent_bytes, received_bytes: of weights and optimizer states, to and from other ranks.
    copied_bytes: that the rank held already. needed_bytes: that it had to get from others, as it wants
    and did not hold them. seconds: of the slowest rank, with opening the new tables."""

    sent_bytes: tuple[int, ...]
    received_bytes: tuple[int, ...]
    copied_bytes: tuple[int, ...]
    needed_bytes: tuple[int, ...]
    seconds: float

    @property
    def bytes(self) -> int:
        """That moved between ranks."""
        return sum(self.received_bytes)


@dataclass(frozen=True)
class Target:
    """Where tables go. group: of the new plan, as this rank has it."""

    plan: Plan
    problem: ShardingProblem
    group: Group
    artifact: str | os.PathLike[str] | None

    @property
    def rank(self) -> int | None:
        return None if self.group is OUTSIDE else rank_of(self.group)

    def check(self) -> None:
        for what, value, wanted in (("plan", self.plan, Plan),
                                    ("problem", self.problem, ShardingProblem)):
            if not isinstance(value, wanted):
                raise TypeError(f"{what}: expected a {wanted.__name__}, found {_fields.shown(value)}")
        check_group(self.group)

    def say(self, engine: Engine, device: int | None = None, source: Source | None = None) -> Said:
        """device: of this rank under the old plan."""
        agreed = {**fingerprints(self.plan, self.plan.complete(self.problem)),
                  "device": engine.device.kind}
        return Said("", device, self.rank, self.plan.device_count, agreed,
                    source if device == 0 else None)


Moved = tuple[Session | None, Resharded, dict[str, MovedMap]]


def reshard(session: Session, target: Target, source: Callable[[], Source],
            maps: Mapping[str, IdTable]) -> Moved:
    """Opens tables under the new plan, fills them and gives their session, under the name of the old
    one, which is closed, and what has come of `maps`. None on a rank that leaves. After an error the old
    session is as it was.

    source: of these tables; raises what keeps them from moving now. maps: of dynamic ids."""
    start = time.monotonic()
    group = target.group
    groups = groups_to_meet(session.group, group)

    def prepare() -> Said:
        session.require_open()
        target.check()
        require_one_group(groups)
        own = source()
        require_same_model(own.problem, target.problem)
        target.plan.verify(target.problem)
        check_dynamic_ids({name: table.policy for name, table in maps.items()}, target.problem,
                          target.plan.device_count)
        session.engine.require_idle()
        return target.say(session.engine, session.rank, own)

    meeting = meet(groups, prepare)

    def open_session() -> Session | None:
        if target.rank is None:
            return None
        return Session(target.plan, target.problem, group, target.artifact,
                       f"{session.name} under another plan", session.threads,
                       session.tier_directory, Engine(session.engine.device),
                       session.policy)

    new, figures, moved = move(meeting, target, session, maps, open_session, start)
    if new is None:
        session.close()
    else:
        new.replace(session)
    return new, figures, moved


def move(meeting: Meeting, target: Target, old: Session | None, maps: Mapping[str, IdTable],
         open_session: Callable[[], Session | None], start: float) -> Moved:
    """The new session, with everything of the old tables in it."""
    new = None
    try:
        new = together(open_session, meeting.group, "opening the tables under the new plan")
        figures, moved = fill(meeting, target, old, maps, new, start)
        if new:
            new.engine.set_num_updates(meeting.source.step)
            new.engine.note_alike()  # all copies have what was moved
    except BaseException:
        if new:
            new.close()
        raise
    return new, figures, moved


def fill(meeting: Meeting, target: Target, old: Session | None, maps: Mapping[str, IdTable],
         new: Session | None, start: float) -> tuple[Resharded, dict[str, MovedMap]]:
    def own(session: Session | None) -> dict:
        return by_table(session.shards()) if session else {}

    before, after = together(
        lambda: (Side(meeting.source.plan, meeting.old, own(old)),
                 Side(target.plan, meeting.new, own(new))),
        meeting.group, "reading the tables")
    larger = target.problem if None in meeting.old else meeting.source.problem
    distance = distances(larger.topology)
    sent, needed = [0] * meeting.size, [0] * meeting.size
    with MovingGroup(meeting.group, meeting.size) as group:
        transfer = Transfer(group, meeting.rank, meeting.size)
        for table in target.problem.tables:
            missing = move_table(table, before, after, transfer, distance, sent)
            needed = [so_far + one for so_far, one in zip(needed, missing, strict=True)]
        rows = {table.name: table.rows for table in target.problem.tables}
        moved = move_maps(maps, rows, meeting, group)
        for session in filter(None, (old, new)):
            session.engine.synchronize()
        everyone = gather((transfer.sent, transfer.received, transfer.copied,
                           time.monotonic() - start), meeting.group)
    given, got, copied, seconds = zip(*everyone, strict=True)
    return Resharded(given, got, copied, tuple(needed), max(seconds)), moved


class MovingGroup:
    """A group of Gloo for moving tables alone; None for one rank. An error in it ends the group of all
    ranks, as others wait for blocks: it becomes a GroupError, which names a rank that is gone."""

    def __init__(self, group: Group, size: int) -> None:
        self._watched = watched_group_of(group) if size > 1 else None

    def __enter__(self) -> dist.ProcessGroup | None:
        self._own = self._watched.new_group() if self._watched else None
        return self._own

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> None:
        if self._watched and isinstance(error, Exception) and not isinstance(error, GroupError):
            self._watched.fail(error, "could not move the tables")
        if self._own is not None:
            dist.destroy_process_group(self._own)


def distances(topology: Topology) -> Callable[[int, int], int]:
    """Of two devices, how many levels of the topology do not hold them in one group."""
    places = []
    for level in topology.levels:
        groups = [number for number, size in enumerate(level.groups) for _ in range(size)]
        places.append(groups)

    def between(a: int, b: int) -> int:
        return sum(groups[a] != groups[b] for groups in places)

    return between
