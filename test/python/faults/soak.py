"""A long job of two ranks: shows whether memory, threads, descriptors or the CPU time of a step
grow. Exit code 1 if they do.

usage: NEUROSHARD_BUILD_DIR=build/release build/venv/bin/python test/python/faults/soak.py
           [--minutes 60] [--json FILE]

Batches vary in size, every 200th step writes a checkpoint over the one before last, and the
profiler of PyTorch records every 10th step. What a rank has and takes is noted after each block of
steps. The first quarter, in which caches fill, does not count; in the rest, a quantity grows if the
median of its last third is above that of its first by more than the noise: five times the median
deviation within the thirds, and at least the share in LIMITS."""

import argparse
import gc
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(os.environ["NEUROSHARD_BUILD_DIR"]) / "python"),
                str(Path(__file__).parent), str(Path(__file__).parents[1])]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import neuroshard as ns  # noqa: E402
from faults_job import make_tables  # noqa: E402
from support.ports import port_of, reserve_port  # noqa: E402

RANKS = 2
BLOCK = 200
PROFILED = 10
LEAST_BLOCKS = 12
# Growth below this share of a quantity is no growth. CPU time itself goes with the load of the
# machine.
LIMITS = {"memory MiB": 0.02, "threads": 0.0, "descriptors": 0.0,
          "CPU of a step in yardsticks": 0.10}


def batch(generator):
    """Bags of 0 to 8 ids, for 1 to 64 samples."""
    samples = int(torch.randint(1, 65, (), generator=generator))
    ids = {}
    for name, rows in {"user_id": 300, "other_user": 300, "clicked": 90, "kind": 11}.items():
        lengths = torch.randint(0, 9, (samples,), generator=generator)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        ids[name] = (torch.randint(0, rows, (int(offsets[-1]),), generator=generator), offsets)
    return ids


def step(tables, generator):
    loss = sum(one.square().mean() for one in tables(batch(generator)).values())
    loss.backward()


def yardstick():
    """Work that is always the same. Other work on the machine slows it down as it does a step."""
    for _ in range(100):
        torch.arange(512.0).square().sum().item()


def run_block(tables, generator):
    """Steps, of which some are recorded. Gives the CPU time of one that is not, in ms and in
    yardsticks."""
    spent = compared = 0.0
    for number in range(BLOCK):
        if number % PROFILED == 0:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
                step(tables, generator)
            continue
        begin = time.process_time()
        step(tables, generator)
        middle = time.process_time()
        yardstick()
        spent += middle - begin
        compared += time.process_time() - middle
    return {"CPU ms per step": 1000 * spent / (BLOCK - BLOCK // PROFILED),
            "CPU of a step in yardsticks": spent / compared}


def look_at_process():
    status = dict(line.split(":", 1) for line in
                  Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    return {"memory MiB": int(status["RssAnon"].split()[0]) / 1024,
            "threads": int(status["Threads"]), "descriptors": len(os.listdir("/proc/self/fd"))}


def run(rank, minutes, port, folder):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                   "KINETO_LOG_LEVEL": "5"}  # else each recording is a line on stderr
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    tables = make_tables(RANKS)
    generator = torch.Generator().manual_seed(rank)
    noted, end = [], time.monotonic() + 60 * minutes
    # All ranks do as many blocks: rank 0 says when it is time.
    going = torch.ones(1)
    while len(noted) < LEAST_BLOCKS or going:
        cpu = run_block(tables, generator)
        ns.distributed.save(folder / f"step-{len(noted) % 2}",
                            {"tables": tables, "step": tables.step})
        gc.collect()
        noted.append({**look_at_process(), **cpu})
        going.fill_(float(time.monotonic() < end))
        dist.broadcast(going, 0)
    (folder / f"rank-{rank}.json").write_text(json.dumps(noted))
    tables.close()
    dist.destroy_process_group()


def growth(values, least_share):
    """(median of the first third, median of the last, whether it grows), without the first
    quarter."""
    values = values[len(values) // 4:]
    third = len(values) // 3
    first, last = values[:third], values[-third:]
    begin, end = statistics.median(first), statistics.median(last)
    noise = max(statistics.median(abs(one - middle) for one in part)
                for part, middle in ((first, begin), (last, end)))
    return begin, end, end - begin > max(5 * noise, least_share * begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json", type=Path, help="gets what was noted, by rank")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        with reserve_port() as place:
            torch.multiprocessing.spawn(run, (given.minutes, port_of(place), folder), RANKS)
        noted = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(RANKS)]
    finally:
        shutil.rmtree(folder)
    if given.json:
        given.json.write_text(json.dumps(noted))
    print(f"{len(noted[0]) * BLOCK} steps")
    grown = False
    for rank, blocks in enumerate(noted):
        for name in blocks[0]:
            begin, end, grows = growth([block[name] for block in blocks],
                                       LIMITS.get(name, math.inf))
            grown |= grows
            print(f"rank {rank}: {name}: {begin:.2f} to {end:.2f}{', grows' if grows else ''}")
    return int(grown)


if __name__ == "__main__":
    sys.exit(main())
