"""Runs a compiled program on all its devices in this process, through the runtime's C interface
(include/neuroshard/Runtime/DriverABI.h)."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

import torch

from neuroshard._artifact.dtypes import DTYPES as ELEMENT_DTYPES
from neuroshard._artifact.manifest import load_manifest
from neuroshard._native.torch_library import load_runtime
from neuroshard.errors import TensorError
from neuroshard.export._signature import DTYPES

# By the numbers that the runtime has for them.
_TABLE_TYPES = tuple(ELEMENT_DTYPES.values())


class _TableInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("rows", ctypes.c_int64), ("dim", ctypes.c_int64),
                ("element_type", ctypes.c_int32), ("num_states", ctypes.c_int32),
                ("state_width", ctypes.c_int64 * 3)]


@cache
def _runtime() -> ctypes.CDLL:
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    return load_runtime((
        ("nsrt_last_error", text, []),
        ("nsrt_world_open", pointer, [text, ctypes.c_int32]),
        ("nsrt_world_close", None, [pointer]),
        ("nsrt_world_num_devices", ctypes.c_int32, [pointer]),
        ("nsrt_world_device", pointer, [pointer, ctypes.c_int32]),
        ("nsrt_world_find_table", ctypes.c_int32, [pointer, text]),
        ("nsrt_world_table_info", ctypes.c_int32,
         [pointer, ctypes.c_int32, ctypes.POINTER(_TableInfo)]),
        ("nsrt_tensor_free", None, [pointer]),
        ("nsrt_table_write", ctypes.c_int32,
         [pointer, ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, pointer]),
        ("nsrt_invoke_all", ctypes.c_int32,
         [pointer, text, ctypes.POINTER(ctypes.POINTER(pointer))])))


@cache
def _descriptor(rank: int) -> type[ctypes.Structure]:
    """MLIR's strided memref descriptor."""
    fields = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p),
              ("offset", ctypes.c_int64)]
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"Descriptor{rank}", (ctypes.Structure,), {"_fields_": fields})


def _describe(tensor: torch.Tensor) -> ctypes.Structure:
    descriptor = _descriptor(tensor.dim())()
    descriptor.allocated = descriptor.aligned = tensor.data_ptr()
    if tensor.dim():
        descriptor.sizes[:] = tensor.shape
        descriptor.strides[:] = tensor.stride()
    return descriptor


def _take(descriptor: ctypes.Structure, dtype: torch.dtype) -> torch.Tensor:
    """A copy of a returned tensor."""
    shape = list(getattr(descriptor, "sizes", ()))
    strides = list(getattr(descriptor, "strides", ()))
    result = torch.empty(shape, dtype=dtype)
    if result.numel():
        span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
        raw = (ctypes.c_char * (span * dtype.itemsize)).from_address(
            descriptor.aligned + descriptor.offset * dtype.itemsize)
        result.copy_(torch.frombuffer(bytearray(raw), dtype=dtype).as_strided(shape, strides))
    return result


def _free_all(returned: Iterable[ctypes.Structure]) -> None:
    """Frees the results, which belong to the caller."""
    for one in returned:
        _runtime().nsrt_tensor_free(one.allocated)


class World:
    """An open artifact of neuroshard-compile; its tables are zero until they are written."""

    def __init__(self, folder: str | os.PathLike, threads_per_device: int = 1) -> None:
        manifest = load_manifest(folder)
        self._results = manifest["functions"]["forward"]["results"]
        self._handle = _runtime().nsrt_world_open(os.fsencode(folder), threads_per_device)
        if not self._handle:
            raise TensorError(_runtime().nsrt_last_error().decode())
        self.devices: int = _runtime().nsrt_world_num_devices(self._handle)
        self._lock = threading.Lock()  # a world runs one call at a time

    def close(self) -> None:
        """Waits for running calls; later calls raise."""
        with self._lock:
            if self._handle:
                _runtime().nsrt_world_close(self._handle)
            self._handle = None

    def write_table(self, name: str, values: torch.Tensor) -> None:
        """values: [rows, dim] of the table's type."""
        with self._lock:
            self._write_table(name, values)

    def _write_table(self, name: str, values: torch.Tensor) -> None:
        index = _runtime().nsrt_world_find_table(self._require_open(), name.encode())
        info = _TableInfo()
        _check(_runtime().nsrt_world_table_info(self._handle, index, ctypes.byref(info)))
        expected = (info.rows, info.dim), _TABLE_TYPES[info.element_type]
        if (tuple(values.shape), values.dtype) != expected:
            raise TensorError(f"table \"{name}\": expected {expected[0]} of {expected[1]}, found "
                              f"{tuple(values.shape)} of {values.dtype}")
        values = values.detach().contiguous()
        _check(_runtime().nsrt_table_write(self._handle, index, 0, info.rows, values.data_ptr()))

    def forward(self, arguments: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
        """arguments[r]: the tensors of device r, those of jagged ones one after the other. Gives
        each device's results. Calls of several threads run one after the other."""
        with self._lock:
            return self._forward(arguments)

    def _forward(self, arguments: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
        self._require_open()
        calls = [self._frame(rank, values) for rank, values in enumerate(arguments)]
        pointer = ctypes.POINTER(ctypes.c_void_p)
        arrays = (pointer * self.devices)(*(ctypes.cast(call[0], pointer) for call in calls))
        status = _runtime().nsrt_invoke_all(self._handle, b"forward", arrays)
        message = _runtime().nsrt_last_error().decode() if status else ""
        # Valid to free whatever the status is.
        returned = [[getattr(call[1], f"r{number}") for number in range(len(self._results))]
                    for call in calls]
        results = [[_take(one, DTYPES[spec["type"]]) for one, spec in zip(part, self._results)]
                   for part in returned]
        _free_all(chain(*returned))
        if status:
            raise TensorError(message)
        return results

    def _frame(self, rank: int, values: Sequence[torch.Tensor]) -> tuple:
        """The array of pointers, the results, and all that must outlive the call."""
        fields = [(f"r{number}", _descriptor(len(spec["shape"])))
                  for number, spec in enumerate(self._results)]
        results = type("Results", (ctypes.Structure,), {"_fields_": fields})()
        kept = [_describe(value) for value in values]
        addresses = [ctypes.addressof(results), _runtime().nsrt_world_device(self._handle, rank),
                     *map(ctypes.addressof, kept)]
        return (ctypes.c_void_p * len(addresses))(*addresses), results, kept, values

    def _require_open(self) -> object:
        if not self._handle:
            raise TensorError("the program has been closed")
        return self._handle


def _check(status: int) -> None:
    if status:
        raise TensorError(_runtime().nsrt_last_error().decode())
