r"""Training of tables on disk: ours with a cache of rows, beside mapped files and LMDB.

    python -m neuroshard.bench.tiers --gib 40 --cache-gib 4 --memory-gib 6 --directory /disk

Each engine runs in a process of its own, one after the other, on the same Zipf-distributed ids. With
--memory-gib (root, control groups of version 1) the process and the pages of files that the system
keeps for it get so much memory and no more. "cold": the first steps after all files were written to
the disk and dropped from memory. "warm": steps after --warm-up more. "mmap-random": mapped files that
are told to be read at random; "mmap": without that advice. "memory": our engine with all tables in memory, for
which these must fit."""

from __future__ import annotations

import argparse
import mmap
import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path

from neuroshard._arguments import Parser, real, whole
from neuroshard.bench._output import parsed, write_output
from neuroshard.bench._tiers.engines import LmdbTables, MappedTables, OurTables
from neuroshard.bench._tiers.trace import Shape, batch_of

ENGINES = ("ssd", "ssd-not-ahead", "mmap", "mmap-random", "lmdb", "memory")
GROUP = Path("/sys/fs/cgroup/memory")
STATE_BYTES = 4


def main(arguments: list[str] | None = None) -> None:
    options = parse(sys.argv[1:] if arguments is None else arguments)
    shape = shape_of(options)
    print(f"{shape.tables} tables of {shape.rows:,} rows x {shape.dim}, batch {shape.batch}, "
          f"{shape.pooling} ids per sample, Zipf {shape.zipf:g}", flush=True)
    figures = {}
    for engine in options.engines:
        figures[engine] = apart(engine, shape, options)
        for when, one in figures[engine].items():
            hits = "" if one["hit_rate"] is None else f", hits {100 * one['hit_rate']:.2f} %"
            print(f"{engine:15} {when}: {one['ms']:9.1f} ms (quartiles {one['quartiles'][0]:.1f}, "
                  f"{one['quartiles'][1]:.1f}){hits}", flush=True)
    if options.output is not None:
        write_output(options.output, {"shape": vars(shape), "engines": figures})


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="python -m neuroshard.bench.tiers", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=real(0.001, 100000), default=4, help="of weights and states")
    parser.add_argument("--cache-gib", type=real(0.0001, 100000), default=0.5)
    parser.add_argument("--memory-gib", type=real(0.1, 100000))
    parser.add_argument("--tables", type=whole(1, 1000), default=4)
    parser.add_argument("--dim", type=whole(4, 4096), default=128)
    parser.add_argument("--batch", type=whole(1, 10**7), default=2048)
    parser.add_argument("--pooling", type=whole(1, 10**4), default=10)
    parser.add_argument("--zipf", type=real(0, 10), default=1.05)
    parser.add_argument("--steps", type=whole(1, 10**6), default=20)
    parser.add_argument("--warm-up", type=whole(0, 10**7), default=100)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["ssd", "mmap-random"],
                        help=f"some of: {'; '.join(ENGINES)}, with commas between")
    parser.add_argument("--output", help="JSON file")
    options = parsed(parser, arguments)
    for engine in options.engines:
        if engine not in ENGINES:
            parser.error(f"--engines: expected some of {'; '.join(ENGINES)}, found {engine!r}")
    if not options.directory.is_dir():
        parser.error(f"--directory: expected a directory, found '{options.directory}'")
    return options


def shape_of(options: argparse.Namespace) -> Shape:
    row_bytes = 4 * options.dim + STATE_BYTES
    rows = int(options.gib * 2**30 / row_bytes / options.tables)
    return Shape(options.tables, rows, options.dim, options.batch, options.pooling, options.zipf)


def apart(engine: str, shape: Shape, options: argparse.Namespace) -> dict[str, dict]:
    """What run() gives in a process of its own. Raises a RuntimeError if that fails."""
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe()
    process = context.Process(target=child, args=(ours, engine, shape, options))
    process.start()
    ours.close()
    try:
        found = theirs.recv()
    except EOFError:
        found = None
    process.join()
    group = group_of(process.pid)
    if group.exists():
        group.rmdir()
    if not isinstance(found, dict):
        raise RuntimeError(f"engine {engine!r} failed: "
                           f"{found or f'exit status {process.exitcode}'}")
    return found


def child(pipe, engine: str, shape: Shape, options: argparse.Namespace) -> None:
    try:
        pipe.send(run(engine, shape, options))
    except Exception as error:  # noqa: BLE001, the parent says it
        pipe.send(f"{type(error).__name__}: {error}")
        raise


def run(engine: str, shape: Shape, options: argparse.Namespace) -> dict[str, dict]:
    if options.memory_gib:
        limit_memory(int(options.memory_gib * 2**30))
    tables = make(engine, shape, options)
    try:
        os.sync()
        drop_pages()
        total = 2 * options.steps + options.warm_up
        times = [time.perf_counter()]
        rates = []
        for number, _ in enumerate(tables.steps(batch_of(shape, one) for one in range(total)), 1):
            times.append(time.perf_counter())
            if number in (options.steps, total - options.steps, total):
                rates.append(tables.hit_rate())
        return {"cold": figures(times[:options.steps + 1], rates[0]),
                "warm": figures(times[-options.steps - 1:], rates[-1])}
    finally:
        tables.close()


def make(engine: str, shape: Shape,
         options: argparse.Namespace) -> OurTables | MappedTables | LmdbTables:
    if engine in ("mmap", "mmap-random"):
        return MappedTables(shape, options.directory,
                            mmap.MADV_NORMAL if engine == "mmap" else mmap.MADV_RANDOM)
    if engine == "lmdb":
        return LmdbTables(shape, options.directory)
    places = 0
    if engine != "memory":
        share = options.cache_gib / options.gib
        places = max(32, min(int(share * shape.rows), shape.rows) // 32 * 32)
    return OurTables(shape, options.directory, places, 1 if engine == "ssd-not-ahead" else 2)


def figures(times: list[float], hit_rate: float | None) -> dict:
    steps = [1e3 * (end - begin) for begin, end in zip(times, times[1:])]
    quartiles = statistics.quantiles(steps, n=4) if len(steps) > 1 else steps * 3
    return {"ms": statistics.fmean(steps), "quartiles": [quartiles[0], quartiles[2]],
            "hit_rate": hit_rate}


def group_of(process: int) -> Path:
    return GROUP / f"neuroshard-{process}"


def limit_memory(size: int) -> None:
    """Of this process and of the files that it reads."""
    group = group_of(os.getpid())
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(size))
    (group / "cgroup.procs").write_text(str(os.getpid()))


def drop_pages() -> None:
    Path("/proc/sys/vm/drop_caches").write_text("3")


if __name__ == "__main__":
    main()
