"""Makes the maps of a module's dynamic ids."""

from __future__ import annotations

from collections.abc import Mapping

from neuroshard._group.agreement import together
from neuroshard.distributed._dynamic_ids.arguments import DynamicIds
from neuroshard.distributed._dynamic_ids.exchange import Exchange
from neuroshard.distributed._dynamic_ids.id_table import IdTable
from neuroshard.distributed._dynamic_ids.translation import Translation
from neuroshard.distributed._session import Session


def open_dynamic_ids(policies: Mapping[str, DynamicIds], table_of: Mapping[str, str], session: Session,
                     seed: int) -> Translation | None:
    """None if no table has them. All ranks call it together. table_of: the table of each feature."""
    if not policies:
        return None
    exchange = Exchange(session.group, session.add_group(), session.rank, session.size)
    tables = []

    def make_tables() -> None:
        for name, policy in policies.items():
            index = session.table_names.index(name)
            tables.append(IdTable(name, index, session.manifest.table(index)["rows"], policy,
                                  exchange, seed))

    together(make_tables, session.group, "making the maps of dynamic ids")
    features = session.input.features
    readers = [[number for number, feature in enumerate(features) if table_of[feature] == table.name]
               for table in tables]
    held = [[ranges_of(tuple(shard["rows"]) for shard in session.manifest.shards_of(rank)
                       if shard["table"] == table.index) for rank in range(session.size)]
            for table in tables]
    return Translation(tables, readers, len(features), held, exchange, session.name)


def ranges_of(ranges) -> list[tuple[int, int]]:
    """The same rows as ranges that neither overlap nor touch."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
