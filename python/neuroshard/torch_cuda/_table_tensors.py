"""Tables in device memory as tensors: which arrays a shard has, and tensors over them. Torch
allocates them, or the emulator; kernels work on them in place."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass

import torch

from neuroshard import cuda
from neuroshard._dtypes import DTYPES
from neuroshard._optimizer_states import ROW_WISE, STATE_NAMES
from neuroshard._row_layout import padded
from neuroshard.errors import TensorError


@dataclass(frozen=True)
class Array:
    """Weights or a state of one shard. columns: None if there is one value per row. stride:
    elements from one row to the next, columns with padding."""

    name: str
    rows: int
    columns: int | None
    stride: int
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        return self.rows * self.stride * self.dtype.itemsize

    def visible(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor[:, 0] if self.columns is None else tensor[:, :self.columns]


def find_arrays(manifest: dict) -> dict[str, list[Array]]:
    """The arrays of each slot of device 0, in order. Keys are names of tables, or TABLE.SHARD for
    tables of several shards."""
    shards = [manifest["shards"][index] for index in manifest["bindings"][0]["slots"]]
    tables, result = [shard["table"] for shard in shards], {}
    for shard in shards:
        table = manifest["tables"][shard["table"]]
        alone = tables.count(shard["table"]) == 1
        name = table["name"] if alone else f"{table['name']}.{shard['name']}"
        result[name] = arrays_of(table, shard)
    return result


def arrays_of(table: dict, shard: dict) -> list[Array]:
    rows, columns = (end - begin for begin, end in (shard["rows"], shard["cols"]))
    dtype = DTYPES[table["element_type"]]
    kind = table["optimizer"]["kind"] if table["optimizer"] else "sgd"
    arrays = [Array("weight", rows, columns, padded(columns, dtype.itemsize), dtype)]
    for name in STATE_NAMES[kind]:
        by_row = kind in ROW_WISE
        arrays.append(Array(name, rows, None if by_row else columns,
                            1 if by_row else padded(columns, 4), torch.float32))
    return arrays


def allocate(arrays: list[Array], place: torch.device) -> list[torch.Tensor]:
    return [torch.zeros((array.rows, array.stride), dtype=array.dtype, device=place)
            for array in arrays]


def as_slot_memory(tensors: list[torch.Tensor]) -> tuple:
    """(weights, state0, state1) for cuda.Device; None where there is no such state."""
    return (*tensors, *[None] * (3 - len(tensors)))


class Lease:
    """Closes a device once nobody holds the lease: neither its tables nor a tensor over its
    memory."""

    def __init__(self, device: cuda.Device) -> None:
        self._finalizer = weakref.finalize(self, device.close)
        # At the end of the process the driver frees all; a close would wait for kernels that may
        # never end, such as a collective whose peer has died.
        self._finalizer.atexit = False


def adopt(arrays: list[Array], slot: cuda.Slot, lease: Lease) -> list[torch.Tensor]:
    """Tensors over memory of the emulator, which takes no memory that torch allocates."""
    pointers = [slot.weights, *slot.states]
    return [_host_bytes(pointer, array.nbytes, lease).view(array.dtype).view(array.rows,
                                                                             array.stride)
            for array, pointer in zip(arrays, pointers)]


def check_sizes(name: str, arrays: list[Array], slot: cuda.Slot) -> None:
    """Raises unless the library expects arrays of these sizes."""
    found = [array.nbytes for array in arrays]
    expected = [slot.weight_bytes, *[slot.state_bytes] * slot.num_states]
    if found != expected:
        raise TensorError(f"table {name}: the library wants arrays of {expected} bytes, its "
                          f"manifest says {found}; take library and package from one build")


def _host_bytes(pointer: int, count: int, owner: object = None) -> torch.Tensor:
    """A tensor over host memory that keeps `owner` alive."""
    kind = type("Bytes", (ctypes.c_char * count,), {})  # plain ctypes arrays have no attributes
    array = kind.from_address(pointer)
    array.owner = owner
    return torch.frombuffer(array, dtype=torch.uint8)


class _DeviceArray:
    """f32 values in CUDA memory, for torch.as_tensor."""

    def __init__(self, pointer: int, count: int) -> None:
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4",
                                         "data": (pointer, False), "version": 2}


def foreign(pointer: int, count: int, place: torch.device) -> torch.Tensor:
    """A tensor over `count` f32 values that the library owns."""
    if count == 0:
        return torch.empty(0, device=place)
    if place.type == "cuda":
        return torch.as_tensor(_DeviceArray(pointer, count), device=place)
    return _host_bytes(pointer, 4 * count).view(torch.float32)
