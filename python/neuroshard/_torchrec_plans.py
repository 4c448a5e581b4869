"""Converts shards to plans of TorchRec and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import torch
from torch.distributed._shard.sharding_spec import EnumerableShardingSpec, ShardMetadata
from torchrec.distributed.types import (EmbeddingModuleShardingPlan, ParameterSharding,
                                        ShardingPlan)

from neuroshard import _torchrec_checks as checks
from neuroshard._model_names import table_name
from neuroshard._vocabulary import COLUMN_ALIGNMENT
from neuroshard.errors import Unsupported
from neuroshard.shards import Shard

# The kind of each sharding type of TorchRec that a plan of NeuroShard can have.
KINDS = {"data_parallel": "replicated", "table_wise": "table_wise",
         "column_wise": "column_wise", "table_column_wise": "column_wise",
         "row_wise": "row_wise", "table_row_wise": "table_row_wise"}


def place(rank: int, device: str, local_ranks: int) -> str:
    """A rank's device as TorchRec writes it."""
    on = device if device == "cpu" else f"{device}:{rank % local_ranks}"
    return f"rank:{rank}/{on}"


def sharding_plan_of(given: Sequence[Shard], device_count: int,
                     modules: Mapping[str, Sequence[str]], *, device: str = "cuda",
                     local_ranks: int | None = None,
                     unpooled: Collection[str] = ()) -> ShardingPlan:
    """See neuroshard.torchrec.to_torchrec. given: the shards of a plan."""
    checks.check_modules(modules)
    checks.check_device(device)
    checks.check_unpooled(unpooled, list(modules))
    local = checks.check_local_ranks(local_ranks, device_count)
    wanted = {table_name(path, name) for path, names in modules.items() for name in names}
    covered = {shard.table for shard in given}
    for missing in sorted(wanted - covered):
        raise Unsupported(f"the plan has no table \"{missing}\", but the model does")
    for extra in sorted(covered - wanted):
        raise Unsupported(f"the plan has a table \"{extra}\", but the model does not")
    result = {}
    for path, names in modules.items():
        result[path] = EmbeddingModuleShardingPlan()
        for name in names:
            shards = [shard for shard in given if shard.table == table_name(path, name)]
            result[path][name] = sharding_of(shards, device_count, local, device)
        if path in unpooled:
            check_one_width(path, result[path])
    return ShardingPlan(result)


def sharding_of(shards: Sequence[Shard], ranks: int, local_ranks: int,
                device: str) -> ParameterSharding:
    """TorchRec's ParameterSharding of one table."""
    copied = next((shard for shard in shards if shard.replicated), None)
    if copied and (len(shards) > 1 or len(copied.devices) != ranks):
        raise Unsupported(f"table \"{copied.table}\": TorchRec has copies of whole tables on all "
                          f"ranks alone; shard \"{copied.name}\" is on ranks {list(copied.devices)}")
    if copied:
        return ParameterSharding("data_parallel", "dense", list(shards[0].devices))
    shards = sorted(shards, key=lambda shard: (shard.rows, shard.cols))
    kind = kind_of(shards, ranks, local_ranks, device)
    owners = [shard.devices[0] for shard in shards]
    places = [ShardMetadata([shard.rows[0], shard.cols[0]], [shard.row_count, shard.width],
                            place(rank, device, local_ranks))
              for shard, rank in zip(shards, owners)]
    if kind in ("row_wise", "table_row_wise"):
        empty = empty_ranks(shards, ranks, local_ranks, kind)
        end, width = shards[-1].rows[1], shards[0].width
        places += [ShardMetadata([end, 0], [0, width], place(rank, device, local_ranks))
                   for rank in empty]
        owners += empty
    return ParameterSharding(kind, "fused", owners, EnumerableShardingSpec(places))


def check_one_width(path: str, module: EmbeddingModuleShardingPlan) -> None:
    """All column shards of an EmbeddingCollection must have one width, since it sends their rows
    in one exchange."""
    first: tuple[str, int] | None = None
    for name, sharding in module.items():
        if sharding.sharding_type != "column_wise":
            continue
        for shard in sharding.sharding_spec.shards:
            width = shard.shard_sizes[1]
            first = first or (name, width)
            if width != first[1]:
                raise Unsupported(
                    f"module \"{path}\": TorchRec needs one width for all column shards of an "
                    f"EmbeddingCollection; \"{first[0]}\" has {first[1]} and \"{name}\" {width} "
                    "columns")


def check_widths(shards: Sequence[Shard]) -> None:
    """All column shards of a table on one rank must have one width, since TorchRec reads them as
    rows of the first one's width."""
    widths: dict[int, int] = {}
    for shard in shards:
        width = widths.setdefault(shard.devices[0], shard.width)
        if width != shard.width:
            raise Unsupported(f"table \"{shard.table}\": TorchRec needs one width for all column "
                              f"shards of a table on one rank; rank {shard.devices[0]} has {width} "
                              f"and {shard.width} columns")


def empty_ranks(shards: Sequence[Shard], ranks: int, local_ranks: int, kind: str) -> range:
    """The ranks that get no rows: TorchRec lists an empty block for each of them."""
    first = 0 if kind == "row_wise" else shards[0].devices[0] // local_ranks * local_ranks
    count = ranks if kind == "row_wise" else local_ranks
    return range(first + len(shards), first + count)


def kind_of(shards: Sequence[Shard], ranks: int, local_ranks: int, device: str) -> str:
    """The sharding type of a table that is not replicated. Raises Unsupported if TorchRec has
    none, or computes wrong results with it."""
    table = shards[0].table
    for shard in shards:
        if shard.width % COLUMN_ALIGNMENT:
            raise Unsupported(f"table \"{table}\": TorchRec needs widths that are multiples of "
                              f"{COLUMN_ALIGNMENT}, shard \"{shard.name}\" has {shard.width} "
                              "columns")
    if len(shards) == 1:
        return "table_wise"
    by_rows = len({shard.rows for shard in shards}) > 1
    by_cols = len({shard.cols for shard in shards}) > 1
    if by_rows and by_cols:
        raise Unsupported(f"table \"{table}\" is cut by rows and by columns; expected one of them")
    if by_cols:
        check_widths(shards)
        return "column_wise"
    return kind_of_rows(shards, ranks, local_ranks, device)


def kind_of_rows(shards: Sequence[Shard], ranks: int, local_ranks: int, device: str) -> str:
    """"row_wise" for blocks of rows in order on all ranks, "table_row_wise" for those on the ranks
    of one host. TorchRec reads other blocks from the wrong ranks, and FBGEMM's CPU kernels mistake
    a table without rows for the next one."""
    owners = [shard.devices[0] for shard in shards]
    rows = shards[-1].rows[1]
    empty = False
    for kind, first, count in (
            ("row_wise", 0, ranks),
            ("table_row_wise", owners[0] // local_ranks * local_ranks, local_ranks)):
        block = -(-rows // count)
        expected = [(first + index, (begin, min(begin + block, rows)))
                    for index, begin in enumerate(range(0, rows, block))]
        if expected != [(rank, shard.rows) for rank, shard in zip(owners, shards)]:
            continue
        if device != "cpu" or len(expected) == count:
            return kind
        empty = True
    if empty:
        raise Unsupported(f"table \"{shards[0].table}\": its {rows} rows leave some of the ranks "
                          "that it is cut over without rows, and TorchRec computes wrong results "
                          "for such plans on the CPU")
    raise Unsupported(
        f"table \"{shards[0].table}\": TorchRec cuts rows into blocks of ceil(rows / ranks) over "
        f"all ranks or over one host; found {len(shards)} blocks on ranks {owners}, the first with "
        f"{shards[0].row_count} rows")


def shards_of_plan(plan: ShardingPlan, tables: Callable[[str, str], tuple[int, int]],
                   device_count: int) -> tuple[list[Shard], bool]:
    """See neuroshard.torchrec.from_torchrec. The shards, and whether a table is cut by columns."""
    checks.expect(plan, "plan", ShardingPlan, "a ShardingPlan of TorchRec")
    device_count = checks.count(device_count, "device_count")
    shards: list[Shard] = []
    by_columns = False
    for path, module in plan.plan.items():
        if not isinstance(module, EmbeddingModuleShardingPlan):
            raise Unsupported(f"module \"{path}\": expected the plan of an embedding module, got: "
                              f"{type(module).__name__}")
        for name, sharding in module.items():
            table = table_name(path, name)
            checks.expect(sharding, f"table \"{table}\"", ParameterSharding,
                          "a ParameterSharding of TorchRec")
            size = checks.pair(tables(path, name), f"table \"{table}\": its rows and dim")
            found = shards_of(table, sharding, size, device_count)
            by_columns |= any(shard.width < size[1] for shard in found)
            shards += found
    return shards, by_columns


def shards_of(table: str, sharding: ParameterSharding, size: tuple[int, int],
              device_count: int) -> list[Shard]:
    kernels = ("dense",) if sharding.sharding_type == "data_parallel" else ("fused", "dense")
    if sharding.compute_kernel not in kernels:
        raise Unsupported(f"table \"{table}\": compute kernel {sharding.compute_kernel}; expected "
                          f"{' or '.join(kernels)}, which keep all rows in device memory")
    if sharding.sharding_type == "data_parallel":
        rows, dim = size
        for rank in sharding.ranks or ():
            checks.check_rank(rank, f"table \"{table}\"", device_count)
        return [Shard(table=table, rows=(0, rows), cols=(0, dim), devices=range(device_count))]
    spec = sharding.sharding_spec
    if sharding.sharding_type not in KINDS or not isinstance(spec, EnumerableShardingSpec):
        raise Unsupported(f"table \"{table}\": sharding type {sharding.sharding_type}; expected "
                          f"one of {', '.join(KINDS)} with a list of shards")
    found = []
    for index, shard in enumerate(spec.shards):
        where = f"table \"{table}\", shard {index}"
        row, col = checks.pair(shard.shard_offsets, f"{where}: its offsets")
        rows, cols = checks.pair(shard.shard_sizes, f"{where}: its sizes")
        rank = parse_rank(str(shard.placement), where)
        checks.check_rank(rank, where, device_count)
        if rows and cols:
            found.append(Shard(table=table, rows=(row, row + rows), cols=(col, col + cols),
                               devices=rank))
    return found


def parse_rank(placement: str, where: str) -> int:
    """The rank in "rank:3/cuda:1"."""
    rank, _, device = placement.partition("/")
    try:
        torch.device(device)
        return int(rank.removeprefix("rank:"))
    except (RuntimeError, ValueError):
        raise Unsupported(f"{where}: placement {placement!r}; expected rank:N/device") from None
