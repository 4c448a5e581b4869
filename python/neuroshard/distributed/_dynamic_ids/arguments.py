"""What becomes of a table's ids: the argument dynamic_ids of the modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neuroshard import _fields
from neuroshard.problem import ShardingProblem

EVICT_BY = ("lru", "lfu", "age")
WHEN_FULL = ("evict", "share", "refuse")
LARGEST = 2**40  # batches of an id, and ids that are counted
MOST_ROWS = 2**31 - 2  # of a rank: slots are numbered with 32 bits


@dataclass(frozen=True)
class DynamicIds:
    """Ids of a table are any numbers of 64 bits, to which its rows are given as they are seen. Its last
    row is the shared one: ids without a row of their own read it, and train it.

    admit_after: how many batches must have an id before it gets a row. when_full: what becomes of an
    id that is due when no row is free: "evict" takes the row of another; "share" lets it read the
    shared row; "refuse" is an error on all ranks. evict_by: which id loses its row: "lru" the one that
    was not seen for longest, "lfu" the one that fewest batches had, "age" the one that has had its row
    for longest. candidates: how many ids are counted before they have a row, on all ranks together, at
    most; None: as many as the table has rows."""

    admit_after: int = 1
    when_full: str = "evict"
    evict_by: str = "lru"
    candidates: int | None = None

    def num_candidates(self, rows: int) -> int:
        """Of a table of so many rows, on all ranks together."""
        return 0 if self.admit_after == 1 else self.candidates or rows

    def __post_init__(self) -> None:
        for what in ("admit_after", "candidates"):
            value = getattr(self, what)
            if value is None and what == "candidates":
                continue
            if not 1 <= _fields.whole(value, what) <= LARGEST:
                raise ValueError(f"{what}: expected a number from 1 to {LARGEST}, found {_fields.shown(value)}")
        for what, known in (("when_full", WHEN_FULL), ("evict_by", EVICT_BY)):
            value = getattr(self, what)
            if value not in known:
                raise ValueError(f"{what}: expected one of {', '.join(known)}, found "
                                 f"{_fields.shown(value)}")


def check_dynamic_ids(given: object, problem: ShardingProblem, ranks: int) -> dict[str, DynamicIds]:
    """By table, in the order of the problem. Raises a TypeError or ValueError for what does not fit."""
    planned = {table.name: table for table in problem.tables if table.dynamic_ids}
    if missing := [name for name in planned if name not in (given or {})]:
        raise ValueError(f"dynamic_ids: the problem says that table \"{missing[0]}\" has them: give a DynamicIds for it")
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(one, DynamicIds) for one in given.values()):
        raise TypeError("dynamic_ids: expected a dict with a DynamicIds for each table that has them, found "
                        f"{_fields.shown(given)}")
    tables = {table.name: table for table in problem.tables}
    for name in given:
        if name not in tables:
            raise ValueError(f"dynamic_ids: expected tables of {', '.join(tables)}, found "
                             f"{_fields.shown(name)}")
        rows = tables[name].rows
        if rows <= ranks:
            raise ValueError(f"dynamic_ids: table \"{name}\": expected at least {ranks + 1} rows, one for "
                             f"each of {ranks} ranks and the shared one, found {rows}")
        if rows // ranks > MOST_ROWS:
            raise ValueError(f"dynamic_ids: table \"{name}\": expected at most {MOST_ROWS} rows for each "
                             f"rank, found {rows} rows on {ranks} ranks")
        counted = given[name].num_candidates(rows)
        if name in planned and planned[name].id_candidates != counted:
            raise ValueError(f"dynamic_ids: table \"{name}\": the problem counts id_candidates="
                             f"{planned[name].id_candidates}, its DynamicIds {counted}: plan with as many")
    if given and problem.batch.id_type != "i64":
        raise ValueError("dynamic_ids: expected a problem whose batch has ids of type i64, found "
                         f"{problem.batch.id_type}")
    return {name: given[name] for name in tables if name in given}
