"""Checks of what a user passes: each error names the argument and says what was expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.planner.types import Topology as TorchRecTopology
from torchrec.distributed.types import ModuleSharder, ShardingType

from neuroshard import fields
from neuroshard.costs import device_classes

TYPES = {one.value for one in ShardingType}
KERNELS = {one.value for one in EmbeddingComputeKernel}


def expect(value: Any, where: str, kind: type, expected: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{where}: expected {expected}, got: {fields.shown(value)}")


def count(value: Any, where: str) -> int:
    found = fields.whole(value, where)
    if found < 1:
        raise ValueError(f"{where}: expected at least 1, got: {found}")
    return found


def share(value: Any, where: str) -> float:
    found = fields.number(value, where)
    if found < 0:
        raise ValueError(f"{where}: expected at least 0, got: {found}")
    return found


def check_topology(topology: Any) -> None:
    if topology is None and not dist.is_initialized():
        raise ValueError("topology: None takes the ranks of torch.distributed, which is not "
                         "initialized; give a Topology or call init_process_group() before")
    if topology is not None:
        expect(topology, "topology", TorchRecTopology,
               "a torchrec.distributed.planner.types.Topology or None")


def check_class(device_class: Any) -> str:
    known = device_classes()
    if not isinstance(device_class, str) or device_class not in known:
        raise ValueError(f"device_class: expected one of {', '.join(known)}, got: "
                         f"{fields.shown(device_class)}")
    return device_class


def check_sharders(sharders: Any) -> tuple[ModuleSharder, ...]:
    found = fields.items(sharders, "sharders", "TorchRec's sharders")
    if not found:
        raise ValueError("sharders: expected at least one of TorchRec's sharders, "
                         "EmbeddingBagCollectionSharder() for instance; got none")
    for index, one in enumerate(found):
        if isinstance(one, type):
            raise TypeError(f"sharders[{index}]: expected a sharder, got the class; "
                            f"{one.__name__}() makes one")
        expect(one, f"sharders[{index}]", ModuleSharder,
               "one of TorchRec's sharders, EmbeddingBagCollectionSharder() for instance")
    return found


def check_constraints(constraints: Any) -> dict[str, ParameterConstraints]:
    """None: none."""
    if constraints is None:
        return {}
    expect(constraints, "constraints", Mapping, "a dict of ParameterConstraints by table, or None")
    for name, limits in constraints.items():
        fields.text(name, "constraints", "names of tables")
        where = f"constraints[{name!r}]"
        expect(limits, where, ParameterConstraints, "a ParameterConstraints")
        check_words(limits.sharding_types, f"{where}.sharding_types", TYPES)
        check_words(limits.compute_kernels, f"{where}.compute_kernels", KERNELS)
        if limits.min_partition is not None:
            count(limits.min_partition, f"{where}.min_partition")
        for one, check in (("pooling_factors", share), ("num_poolings", share),
                           ("batch_sizes", count)):
            check_each(getattr(limits, one), f"{where}.{one}", check)
        expect(limits.is_weighted, f"{where}.is_weighted", bool | None, "True, False or None")
    return dict(constraints)


def check_words(words: Any, where: str, known: set[str]) -> None:
    """None: no choice was made."""
    for one in fields.texts(words, where) if words is not None else ():
        if one not in known:
            raise ValueError(f"{where}: expected some of {', '.join(sorted(known))}, got: "
                             f"{fields.shown(one)}")


def check_each(values: Any, where: str, check: Callable[[Any, str], float]) -> None:
    """One number for each feature of the table, or one for all; None: the default."""
    for index, one in enumerate(fields.items(values, where, "numbers")
                                if values is not None else ()):
        check(one, f"{where}[{index}]")


def check_modules(modules: Any) -> None:
    expect(modules, "modules", Mapping, "the names of each module's tables by its path")
    for path, names in modules.items():
        fields.text(path, "modules", "paths of modules")
        fields.texts(names, f"modules[{path!r}]")


def check_unpooled(unpooled: Any, paths: Sequence[str]) -> None:
    for path in fields.texts(unpooled, "unpooled"):
        if path not in paths:
            raise ValueError(f"unpooled: expected paths of the modules "
                             f"({', '.join(map(repr, paths))}), got: {path!r}")


def check_device(device: Any) -> None:
    fields.text(device, "device", "a type of devices, \"cuda\" for instance")
    try:
        known = torch.device(device).index is None
    except RuntimeError:
        known = False
    if not known:
        raise ValueError(f"device: expected a type of devices without a number, \"cuda\" or "
                         f"\"cpu\", got: {device!r}")


def check_local_ranks(local_ranks: Any, ranks: int) -> int:
    """None: all."""
    if local_ranks is None:
        return ranks
    local = fields.whole(local_ranks, "local_ranks")
    if local < 1 or ranks % local:
        raise ValueError(f"local_ranks: expected a divisor of the plan's {ranks} ranks, as all "
                         f"hosts have as many; got: {local}")
    return local


def check_rank(rank: Any, where: str, ranks: int) -> None:
    if not 0 <= fields.whole(rank, f"{where}: its rank") < ranks:
        raise ValueError(f"{where} is on rank {rank}; expected ranks from 0 to {ranks - 1}, as "
                         f"device_count is {ranks}")


def pair(value: Any, where: str) -> tuple[int, int]:
    """Of rows and columns; neither is negative."""
    found = tuple(fields.whole(one, where) for one in fields.items(value, where, "two numbers"))
    if len(found) != 2 or min(found) < 0:
        raise ValueError(f"{where}: expected two numbers, of rows and columns, got: "
                         f"{fields.shown(value)}")
    return found
