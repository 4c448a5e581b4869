"""Writes a valid plan for a workload by splitting tables, without any search.

Tables are halved, by columns down to a width and then by rows, until every piece is below a
size; pieces go, the largest first, to the device with the least so far. Every tenth table
that is small is replicated. The same arguments always give the same plan.

    generate_plan.py WORKLOAD.json --devices N [--piece-gib G] [--min-width W] > PLAN.json
"""

import argparse
import heapq
import json

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
STATES_PER_ELEMENT = {"sgd": 0, "adagrad": 1, "rowwise_adagrad": 0, "adam": 2,
                      "momentum": 1, "adamw": 2, "partial_rowwise_adam": 1,
                      "rowwise_rmsprop": 0, "ftrl": 2, "lars_sgd": 1, "lamb": 2,
                      "partial_rowwise_lamb": 1, "rowwise_adagrad_with_counter": 0}
COLUMN_ALIGNMENT = 4
SMALL_BYTES = 1 << 20
REPLICATED_EVERY = 10


def bytes_per_element(table):
    optimizer = table.get("optimizer", "sgd")
    kind = optimizer if isinstance(optimizer, str) else optimizer["kind"]
    return ELEMENT_BYTES[table.get("type", "f32")] + 4 * STATES_PER_ELEMENT[kind]


def halve(begin, end, alignment):
    middle = (begin + end) // 2 // alignment * alignment
    return [(begin, middle), (middle, end)]


def pieces_of(table, piece_bytes, min_width):
    """Row and column ranges that cover the table, with the bytes of each."""
    size = bytes_per_element(table)
    pending = [((0, table["rows"]), (0, table["dim"]))]
    while pending:
        rows, cols = pending.pop()
        count = rows[1] - rows[0]
        width = cols[1] - cols[0]
        if count * width * size <= piece_bytes or (count == 1 and width < 2 * min_width):
            yield rows, cols, count * width * size
        elif width >= 2 * min_width:
            pending += [(rows, part) for part in halve(*cols, COLUMN_ALIGNMENT)]
        else:
            pending += [(part, cols) for part in halve(*rows, 1)]


def make_plan(workload, devices, piece_bytes, min_width):
    shards = []
    pieces = []
    small = 0
    for index, table in enumerate(workload["tables"]):
        is_small = table["rows"] * table["dim"] * bytes_per_element(table) <= SMALL_BYTES
        small += is_small
        if is_small and small % REPLICATED_EVERY == 0:
            shards.append((index, (0, table["rows"]), (0, table["dim"]), list(range(devices))))
            continue
        for rows, cols, size in pieces_of(table, piece_bytes, min_width):
            pieces.append((-size, index, rows, cols))
    load = [(0, device) for device in range(devices)]
    for size, index, rows, cols in sorted(pieces):
        used, device = heapq.heappop(load)
        heapq.heappush(load, (used - size, device))
        shards.append((index, rows, cols, [device]))
    shards.sort()
    counts = {}
    named = []
    for index, rows, cols, places in shards:
        table = workload["tables"][index]["name"]
        number = counts.get(table, 0)
        counts[table] = number + 1
        named.append({"name": f"{table}_{number}", "table": table, "rows": rows, "cols": cols,
                      "devices": places, "tier": "hbm"})
    return named


def write_plan(shards, devices, semantics):
    """In the normal form of the schema: one shard a line."""
    lines = ",\n".join("  " + json.dumps(shard, separators=(",", ":")) for shard in shards)
    print('{\n "schema": "neuroshard.plan.v1",\n "device_count": %d,\n'
          ' "optimizer_semantics": "%s",\n "shards": [\n%s\n ]\n}' % (devices, semantics, lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload")
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--piece-gib", type=float, default=8)
    parser.add_argument("--min-width", type=int, default=64)
    arguments = parser.parse_args()
    with open(arguments.workload, encoding="utf-8") as file:
        workload = json.load(file)
    shards = make_plan(workload, arguments.devices, int(arguments.piece_gib * 2**30),
                       max(arguments.min_width, COLUMN_ALIGNMENT))
    write_plan(shards, arguments.devices, workload.get("optimizer_semantics", "exact"))


if __name__ == "__main__":
    main()
