#!/usr/bin/env python3
"""The bytes that each phase must move at the points of points.py, and its least time.

usage: roofline.py [--bandwidth TB/S] [--cache MiB] [POINT...]

docs/cuda.md has the formulas. Ids are taken as uniform, and no row of a table is in the cache;
gradients are, if all of a batch fit there. All ids are sorted, those of few rows, too. The
bandwidth is what a device-to-device copy reaches, bytes read and written."""

import argparse
from dataclasses import dataclass

from points import ID_BYTES, OFFSET_BYTES, OUTPUT_BYTES, TABLES, dlrm_features, listed

STATE_BYTES = 4  # row-wise Adagrad, a row
KEY, ORDER, PLACE = 4, 4, 8  # bytes of a sorted position; a sum has no factors
DIGIT_BITS = 8  # that a pass of the sort orders
DLRM_BAGS = 65536
SORTED_ROWS = 64  # tables of no more are updated in another way, which is not shown here


@dataclass(frozen=True)
class Table:
    """A table and its feature: ids of every bag."""

    rows: int
    row_bytes: int
    dim: int
    bags: int
    ids: int

    @property
    def lookups(self):
        return self.bags * self.ids

    @property
    def distinct(self):
        """The expected number of distinct rows of uniform ids."""
        return self.rows * (1 - (1 - 1 / self.rows) ** self.lookups)


def forward_bytes(tables):
    return sum(table.lookups * (table.row_bytes + ID_BYTES)
               + table.bags * (OFFSET_BYTES + table.dim * OUTPUT_BYTES) for table in tables)


def sort_bytes(tables):
    """Expansion, passes of the sort, and runs."""
    lookups = sum(table.lookups for table in tables)
    rows = sum(table.rows for table in tables)
    passes = -(-rows.bit_length() // DIGIT_BITS)
    return lookups * (ID_BYTES + KEY + PLACE
                      + (passes + 1) * 2 * (KEY + ORDER))


def update_bytes(tables, cache_bytes):
    gradients = sum(4 * table.dim * table.bags for table in tables)
    if gradients > cache_bytes:
        gradients = sum(4 * table.dim * table.lookups for table in tables)
    return (gradients + sum(table.lookups * (ORDER + PLACE) for table in tables)
            + sum(table.distinct * (2 * table.row_bytes + 2 * STATE_BYTES + KEY + ORDER)
                  for table in tables))


def shapes():
    """Tables of each point, by name."""
    named = {point.name: [Table(point.rows, point.row_bytes, point.dim, point.bags, point.ids)
                          ] * TABLES
             for point in listed() if not point.zipf and point.rows > SORTED_ROWS}
    named["DLRM-v2"] = [Table(rows, 4 * dim, dim, DLRM_BAGS, ids)
                        for rows, dim, ids in dlrm_features()]
    return named


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bandwidth", type=float, default=4.3, metavar="TB/S")
    parser.add_argument("--cache", type=float, default=50, metavar="MIB")
    parser.add_argument("points", nargs="*", metavar="POINT")
    options = parser.parse_args()
    named = shapes()
    if unknown := [name for name in options.points if name not in named]:
        parser.error(f"no point {unknown[0]}; expected some of {', '.join(named)}")
    print("| point | forward MB | least ms | sort MB | least ms | update MB | least ms |")
    print("|---|---|---|---|---|---|---|")
    for name in options.points or named:
        tables = named[name]
        phases = (forward_bytes(tables), sort_bytes(tables),
                  update_bytes(tables, options.cache * 2**20))
        cells = " | ".join(f"{count / 1e6:.0f} | {count / (options.bandwidth * 1e9):.3f}"
                           for count in phases)
        print(f"| {name} | {cells} |")


if __name__ == "__main__":
    main()
