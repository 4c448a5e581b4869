"""Checks of the planner's arguments and of the tables that it finds: each error names the argument
or the table, and what is expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch.distributed as dist
from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.planner.types import Topology as TorchRecTopology
from torchrec.distributed.types import ModuleSharder, ShardingType

from neuroshard import _fields
from neuroshard._torchrec_checks import count, expect
from neuroshard.costs import device_classes
from neuroshard.errors import Unsupported
from neuroshard.topology import Topology

TYPES = {one.value for one in ShardingType}
KERNELS = {one.value for one in EmbeddingComputeKernel}
# The compute kernels that keep all rows in device memory.
IN_DEVICE_MEMORY = ("fused", "dense")
# Fields of ParameterConstraints that put rows outside device memory.
BEYOND_MEMORY = ("key_value_params", "use_virtual_table")


def share(value: Any, where: str) -> float:
    found = _fields.number(value, where)
    if found < 0:
        raise ValueError(f"{where}: expected at least 0, got: {found}")
    return found


def check_topology(topology: Any) -> None:
    if topology is None and not dist.is_initialized():
        raise ValueError("topology: None takes the ranks of torch.distributed, which is not "
                         "initialized; give a Topology or call init_process_group() before")
    if topology is not None:
        expect(topology, "topology", TorchRecTopology | Topology | str,
               "a torchrec.distributed.planner.types.Topology, a neuroshard.Topology, a text such as "
               "\"8xH200\", or None")


def check_class(device_class: Any) -> str | None:
    if device_class is None:
        return None
    known = device_classes()
    if not isinstance(device_class, str) or device_class not in known:
        raise ValueError(f"device_class: expected one of {', '.join(known)}, got: "
                         f"{_fields.shown(device_class)}")
    return device_class


def check_sharders(sharders: Any) -> tuple[ModuleSharder, ...]:
    found = _fields.items(sharders, "sharders", "TorchRec's sharders")
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
    """The constraints as a dict; None: an empty one."""
    if constraints is None:
        return {}
    expect(constraints, "constraints", Mapping, "a dict of ParameterConstraints by table, or None")
    for name, limits in constraints.items():
        _fields.text(name, "constraints", "names of tables")
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
    for one in _fields.texts(words, where) if words is not None else ():
        if one not in known:
            raise ValueError(f"{where}: expected some of {', '.join(sorted(known))}, got: "
                             f"{_fields.shown(one)}")


def check_each(values: Any, where: str, check: Callable[[Any, str], float]) -> None:
    """One number for each feature of the table, or one for all; None: the default."""
    for index, one in enumerate(_fields.items(values, where, "numbers")
                                if values is not None else ()):
        check(one, f"{where}[{index}]")


def check_limits(name: str, limits: ParameterConstraints) -> None:
    for one in BEYOND_MEMORY:
        if getattr(limits, one):
            raise Unsupported(f"table \"{name}\": {one} is set; tables outside device memory "
                              "cannot be planned for TorchRec yet")
    kernels = set(limits.compute_kernels or IN_DEVICE_MEMORY)
    if not kernels & set(IN_DEVICE_MEMORY):
        raise Unsupported(f"table \"{name}\": compute_kernels {sorted(kernels)}; expected fused or "
                          "dense among them")


def check_features(table: str, names: Sequence[str]) -> None:
    """Refuses a feature that a table reads twice. TorchRec accepts it, but then returns columns of
    shards in the wrong order, or rows of twice the width in an EmbeddingCollection."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Unsupported(f"table \"{table}\": it reads feature \"{name}\" twice, which "
                              "TorchRec runs wrong; expected each feature once, and its result "
                              "used twice")
