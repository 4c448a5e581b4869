"""First weights of tables by functions of the caller."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import torch

from neuroshard import _fields
from neuroshard._artifact.dtypes import DTYPES
from neuroshard.distributed._shards import LocalShard
from neuroshard.problem import ShardingProblem
from neuroshard.tables import Table

BLOCK = 2**22  # the most numbers that a function fills at once

Function = Callable[[torch.Tensor], object]


def check_initial_values(given: object, problem: ShardingProblem,
                         dynamic: Mapping[str, object]) -> dict[str, Function]:
    """By table. Raises a TypeError or ValueError for what is none. dynamic: tables with dynamic ids, whose
    rows get first weights again and again."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError("initial_values: expected a dict with a function for each table that has one, found "
                        f"{_fields.shown(given)}")
    names = [table.name for table in problem.tables]
    for name, function in given.items():
        if name not in names:
            raise ValueError(f"initial_values: expected tables of {', '.join(names)}, found {_fields.shown(name)}")
        if name in dynamic:
            raise ValueError(f"initial_values: table \"{name}\" has dynamic ids, whose rows begin with weights by "
                             "seed and id; expected tables without")
        if problem.table(name).type not in DTYPES:
            raise ValueError(f"initial_values: table \"{name}\" is frozen and has the weights of its artifact; expected "
                             "tables that are trained")
        if not callable(function):
            raise TypeError(f"initial_values: table \"{name}\": expected a function that fills a tensor, found "
                            f"{_fields.shown(function)}")
    return dict(given)


def fill(shards: Sequence[LocalShard], problem: ShardingProblem, functions: Mapping[str, Function],
         seed: int) -> None:
    """Fills this rank's shards of the functions' tables. The values depend on function, seed and table
    alone: each block of whole rows is made as on any other rank, with torch's random numbers seeded for it."""
    for name, function in functions.items():
        table = problem.table(name)
        own = [shard for shard in shards if shard.table == name]
        rows = max(1, BLOCK // table.dim)
        blocks = {block for shard in own for block in range(shard.rows[0] // rows, -(-shard.rows[1] // rows))}
        for block in sorted(blocks):
            begin, end = block * rows, min((block + 1) * rows, table.rows)
            values = made(function, table, (end - begin, table.dim), f"{seed} {name} {block}")
            for shard in own:
                first, last = max(begin, shard.rows[0]), min(end, shard.rows[1])
                if first < last:
                    shard.weights[first - shard.rows[0]:last - shard.rows[0]].copy_(
                        values[first - begin:last - begin, slice(*shard.cols)])


def made(function: Function, table: Table, shape: tuple[int, int], key: str) -> torch.Tensor:
    """What a function makes of zeros, in place or as its result."""
    block = torch.zeros(shape, dtype=torch.float32, device="cpu")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        # Of the CPU alone: torch.manual_seed() is for all devices.
        torch.default_generator.manual_seed(int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big"))
        try:
            result = function(block)
        except Exception as error:
            raise ValueError(f"initial_values: table \"{table.name}\": its function failed for zeros of {list(shape)}: "
                             f"{type(error).__name__}: {error}") from error
    values = block if result is None else result
    if not isinstance(values, torch.Tensor) or values.shape != shape:
        found = f"one of {list(values.shape)}" if isinstance(values, torch.Tensor) else _fields.shown(result)
        raise ValueError(f"initial_values: table \"{table.name}\": expected None or a tensor of {list(shape)}, "
                         f"found {found}")
    return values
