"""Plans by hand: every way to cut a table, at random boundaries, on random devices."""

import random
from dataclasses import replace

from support.model import Plan, Shard

KINDS = ("table_wise", "columns", "rows", "rows_and_columns", "replicated", "copies",
         "copies_of_rows_and_columns", "hot_rows")


def cuts(size, pieces, unit, chooser):
    """Uneven boundaries 0 < ... < size, multiples of `unit` inside; fewer pieces if there
    is no room for as many."""
    inner = range(unit, size, unit)
    chosen = sorted(chooser.sample(inner, min(pieces - 1, len(inner))))
    bounds = [0, *chosen, size]
    return list(zip(bounds, bounds[1:]))


def owners(count, devices, chooser):
    """`count` owners, no two in a row the same where that is possible."""
    order = list(devices)
    chooser.shuffle(order)
    return [(order[number % len(order)],) for number in range(count)]


def some(devices, chooser):
    """Two devices at least, if there are as many."""
    return tuple(sorted(chooser.sample(devices, chooser.randint(min(2, len(devices)),
                                                                len(devices)))))


def cut_table(table, kind, devices, world, chooser):
    """Shards of one table; `devices` may own some, `world` is the number of devices."""
    if "copies" in kind:
        shards = cut_table(table, kind.removeprefix("copies").removeprefix("_of_"), devices, world, chooser)
        return [replace(shard, devices=some(devices, chooser)) for shard in shards]
    if kind == "hot_rows" and table.rows > 1:
        return cut_hot_rows(table, devices, world, chooser)
    whole_rows, whole_cols = [(0, table.rows)], [(0, table.dim)]
    if kind == "replicated":
        return [Shard(table.name, whole_rows[0], whole_cols[0], tuple(range(world)))]
    pieces = chooser.randint(2, max(2, min(4, len(devices))))
    rows = cuts(table.rows, pieces, 1, chooser) if "rows" in kind else whole_rows
    cols = cuts(table.dim, pieces, 4, chooser) if "columns" in kind else whole_cols
    places = [(r, c) for r in rows for c in cols]
    return [Shard(table.name, r, c, owner)
            for (r, c), owner in zip(places, owners(len(places), devices, chooser))]


def cut_hot_rows(table, devices, world, chooser, kinds=("table_wise", "columns", "rows", "rows_and_columns")):
    """A copy of the first rows on each device, and the others whole or cut."""
    hot = chooser.randint(1, table.rows - 1)
    kind = chooser.choice(kinds)
    cold = cut_table(replace(table, rows=table.rows - hot), kind, devices, world, chooser)
    return [Shard(table.name, (0, hot), (0, table.dim), tuple(sorted(devices))),
            *(replace(shard, rows=(shard.rows[0] + hot, shard.rows[1] + hot)) for shard in cold)]


def random_plan(model, devices, seed, semantics="exact", kinds=KINDS, idle=()):
    """A plan that uses the kinds in turn, beginning at a random one. Devices in `idle`
    own nothing (then no table may be replicated)."""
    chooser = random.Random(seed)
    available = [device for device in range(devices) if device not in idle]
    kinds = [kind for kind in kinds if devices > 1 or kind != "replicated"]
    start = chooser.randrange(len(kinds))
    shards = []
    for number, table in enumerate(model.tables):
        kind = kinds[(start + number) % len(kinds)]
        if kind == "hot_rows" and semantics == "per_shard" and table.rows > 1:
            # The oracle takes row-wise states for the same columns of all rows.
            shards += cut_hot_rows(table, available, devices, chooser, ("table_wise", "rows"))
        else:
            shards += cut_table(table, kind, available, devices, chooser)
    return Plan(devices, shards, semantics)
