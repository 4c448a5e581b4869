r"""Steps of unpooled lookups that send each id once, beside steps that send all.

    python -m neuroshard.bench.cluster 2x1@200mbit -m neuroshard.bench.distinct_ids
    python -m torch.distributed.run --standalone --nproc-per-node 2 -m neuroshard.bench.distinct_ids

Ids of sequences are drawn by a power law, the same for both, which take turns. A step is a forward, a
backward and the update; its time is that of the slowest rank. Bytes are those that the engine sends."""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard._arguments import Parser, real, whole
from neuroshard._group.agreement import gather

WARM_UP = 3


def arguments() -> argparse.Namespace:
    parser = Parser(description=__doc__.splitlines()[0])
    for name, default, text in (("rows", 1_000_000, "of each table"), ("dim", 64, "columns"),
                                ("tables", 4, "tables"), ("batch", 256, "samples of a rank"),
                                ("length", 50, "ids of a sample"), ("steps", 20, "that are measured")):
        parser.add_argument(f"--{name}", type=whole(1, 2**40), default=default, help=text)
    parser.add_argument("--skew", type=real(1, 100), default=4.0,
                        help="an id is rows * uniform^SKEW: 1 for all alike")
    return parser.parse_args()


def draw(given: argparse.Namespace, generator: torch.Generator) -> dict[str, torch.Tensor]:
    return {f"f{one}": (given.rows * torch.rand(given.batch, given.length, generator=generator)**given.skew).long()
            for one in range(given.tables)}


def timed_step(tables: torch.nn.Module, ids: dict[str, torch.Tensor]) -> float:
    """Milliseconds of a forward, backward and update."""
    dist.barrier()
    start = time.perf_counter()
    sum(rows.sum() for rows, _ in tables(ids).values()).backward()
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    given = arguments()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    problem = ns.ShardingProblem(
        tables=[ns.Table(f"t{one}", given.rows, given.dim, optimizer="rowwise_adagrad") for one in range(given.tables)],
        features=[ns.Feature(f"f{one}", f"t{one}", "none", given.length) for one in range(given.tables)],
        batch=given.batch * ranks, topology=f"{ranks}xCPU")
    plan = ns.Plan(device_count=ranks, shards=[
        ns.Shard(table=f"t{one}", rows=(0, given.rows), cols=(0, given.dim), devices=one % ranks)
        for one in range(given.tables)])
    modules = {name: ns.ShardedEmbeddingCollection(plan, problem, learning_rate=0.1, distinct_ids=name == "distinct")
               for name in ("all", "distinct")}
    times: dict[str, list[float]] = {name: [] for name in modules}
    generator, repeated = torch.Generator().manual_seed(rank), []
    for step in range(WARM_UP + given.steps):
        ids = draw(given, generator)
        for name, tables in modules.items():
            if step == WARM_UP:
                tables.reset_phases()
            took = timed_step(tables, ids)
            if step >= WARM_UP:
                times[name].append(took)
        repeated.append(1 - sum(len(one.unique()) for one in ids.values()) / sum(map(torch.numel, ids.values())))
    for name, tables in modules.items():
        slowest = [max(one) for one in zip(*gather(times[name], None))]
        sent = sum(gather(sum(count for _, count in tables.phases().values()), None)) / given.steps
        if rank == 0:
            low, middle, high = statistics.quantiles(slowest, n=4) if len(slowest) > 1 else slowest * 3
            print(f"{name:9}{middle:9.1f} ms a step (quartiles {low:.1f}, {high:.1f}){sent / 1e6:9.2f} MB sent by all ranks")
        tables.close()
    if rank == 0:
        print(f"{statistics.mean(repeated):.0%} of a rank's ids are repetitions")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
