r"""A training step of a table with dynamic ids beside one of a static table of as many rows.

    python -m torch.distributed.run --standalone --nproc-per-node 4 -m neuroshard.bench.dynamic_ids

Ids are drawn from `--ids` numbers of 64 bits, by a power law; the part `--new` of each batch are numbers
that no batch had before, one after the other. The static table has the same plan and reads the rows that
the map gave to the ids, so that both do the same work but for the map. Steps of both take turns. Printed
are the medians of the slowest rank, and what has become of the ids. With `--simulate` there is no static
table: the map is compared with a plain simulation, of dicts and heaps."""

from __future__ import annotations

import argparse
import heapq
import statistics
import time
from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard._arguments import Parser, whole
from neuroshard._group.agreement import gather

WARM_UP = 5
SKEW = 3.0  # an id is the number of a rank of popularity, ids * uniform^SKEW


def arguments() -> argparse.Namespace:
    parser = Parser(description=__doc__.splitlines()[0])
    for name, default, text in (("rows", 100_001, "of the table, with the shared one"),
                                ("ids", 1_000_000, "that batches are drawn from"),
                                ("dim", 64, "columns"), ("batch", 1024, "samples of a rank"),
                                ("pooling", 20, "ids of a sample"), ("steps", 100, "that are measured")):
        parser.add_argument(f"--{name}", type=whole(1, 2**40), default=default, help=text)
    parser.add_argument("--new", type=float, default=0.1, help="the part of a batch that are new ids")
    parser.add_argument("--evict-by", default="lru", choices=("lru", "lfu", "age"))
    parser.add_argument("--simulate", action="store_true", help="compare the map with a simulation")
    return parser.parse_args()


def batches(given: argparse.Namespace, rank: int, ranks: int) -> Iterator[torch.Tensor]:
    """Ids [batch, pooling] of a rank."""
    generator = torch.Generator().manual_seed(rank)
    count, fresh = given.batch * given.pooling, int(given.new * given.batch * given.pooling)
    next_new = given.ids + rank * 2**40
    while True:
        old = (given.ids * torch.rand(count - fresh, generator=generator)**SKEW).long()
        new = torch.arange(next_new, next_new + fresh)
        next_new += fresh
        order = torch.randperm(count, generator=generator)
        yield torch.cat([old, new])[order].reshape(given.batch, given.pooling)


def timed_step(tables: torch.nn.Module, ids: torch.Tensor) -> float:
    """Milliseconds of a forward, backward and update."""
    dist.barrier()
    start = time.perf_counter()
    tables({"id": ids})["id"].sum().backward()
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    given = arguments()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    problem = ns.ShardingProblem(
        tables=[ns.Table("t", given.rows, given.dim, optimizer="rowwise_adagrad")],
        features=[ns.Feature("id", "t", mean_pooling=given.pooling)], batch=given.batch * ranks,
        topology=f"{ranks}xCPU")
    cuts = [given.rows * number // ranks for number in range(ranks + 1)]
    plan = ns.Plan(device_count=ranks, shards=[
        ns.Shard(table="t", rows=(cuts[one], cuts[one + 1]), cols=(0, given.dim), devices=one)
        for one in range(ranks)])
    policy = ns.DynamicIds(evict_by=given.evict_by)
    dynamic = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.1, dynamic_ids={"t": policy})
    if given.simulate:
        simulate(given, dynamic, rank, ranks)
        dynamic.close()
        dist.destroy_process_group()
        return
    static = ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.1)
    times: list[tuple[float, float]] = []
    source = batches(given, rank, ranks)
    for _ in range(WARM_UP + given.steps):
        ids = next(source)
        first = timed_step(dynamic, ids)
        times.append((first, timed_step(static, rows_of(dynamic, ids))))
    slowest = [tuple(max(values) for values in zip(*step)) for step in zip(*gather(times[WARM_UP:], None))]
    figures = dynamic.dynamic_ids["t"].total()
    if rank == 0:
        own, other = (statistics.median(values) for values in zip(*slowest))
        print(f"dynamic {own:.2f} ms, static {other:.2f} ms, {own / other:.2f} x, {given.steps} steps\n{figures}")
    dynamic.close()
    static.close()
    dist.destroy_process_group()


class Simulation:
    """The ids and rows of an owner, as docs/dynamic-ids.md says."""

    def __init__(self, rows: Sequence[int], evict_by: str) -> None:
        self.free, self.evict_by = sorted(rows), evict_by
        self.entries: dict[int, list[int]] = {}  # by id: row, batches with it, the last, the first
        self.order: list[tuple[tuple[int, ...], int]] = []  # a heap of keys that ids have or had
        self.batch = 0

    def key(self, row: int, count: int, last: int, since: int) -> tuple[int, ...]:
        return {"lru": (last, row), "lfu": (count, last, row), "age": (since, row)}[self.evict_by]

    def put(self, id: int, entry: list[int]) -> None:
        self.entries[id] = entry
        heapq.heappush(self.order, (self.key(*entry), id))

    def train(self, ids: Sequence[int]) -> None:
        self.batch += 1
        new = []
        for id in dict.fromkeys(ids):
            if id not in self.entries:
                new.append(id)
                continue
            row, count, _, since = self.entries[id]
            self.put(id, [row, count + 1, self.batch, since])
        self.evict(len(new) - len(self.free))
        for id in new[:len(self.free)]:
            self.put(id, [heapq.heappop(self.free), 1, self.batch, self.batch])

    def evict(self, count: int) -> None:
        in_use = []
        while count > 0 and self.order:
            key, id = heapq.heappop(self.order)
            entry = self.entries.get(id)
            if entry is None or self.key(*entry) != key:
                continue
            if entry[2] == self.batch:
                in_use.append((key, id))
                continue
            heapq.heappush(self.free, self.entries.pop(id)[0])
            count -= 1
        for one in in_use:
            heapq.heappush(self.order, one)


def simulate(given: argparse.Namespace, tables: torch.nn.Module, rank: int, ranks: int) -> None:
    """Trains, and compares the maps of all ranks after the last step."""
    table = tables.dynamic_ids["t"]
    own = Simulation(table.owner.entries()[:, 1].tolist(), given.evict_by)
    sources = [batches(given, one, ranks) for one in range(ranks)]
    seen: set[int] = set()
    for _ in range(given.steps):
        step = [next(source) for source in sources]
        timed_step(tables, step[rank])
        ids = torch.cat(step).flatten()
        mine = ids[torch.ops.neuroshard.owners_of_ids(ids, ranks) == rank].tolist()
        own.train(mine)
        seen.update(mine)
    found = {id: entry for id, *entry in table.owner.entries().tolist() if entry[1]}
    different = sum(found.get(id) != own.entries.get(id) for id in found.keys() | own.entries.keys())
    totals = [sum(values) for values in zip(*gather((len(seen), different), None))]
    figures = table.total()
    if rank == 0:
        print(f"{totals[0]} distinct ids, {figures.ids} have rows, of which {totals[1]} differ from the "
              f"simulation, {given.steps} steps\n{figures}")


def rows_of(tables: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """The rows that the ids of a batch have."""
    pairs = gather(tables.dynamic_ids["t"].pairs(), None)
    known, rows = (torch.cat(parts) for parts in zip(*pairs))
    order = known.argsort()
    known, rows = known[order], rows[order]
    places = torch.searchsorted(known, ids).clamp(max=known.shape[0] - 1)
    shared = tables.dynamic_ids["t"].shared_row
    return torch.where(known[places] == ids, rows[places], shared)


if __name__ == "__main__":
    main()
