"""The driver's C interface (include/neuroshard/Runtime/DriverABI.h) through ctypes."""

import ctypes
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from support.model import DTYPES

SCALARS = {"f32": ctypes.c_float, "i64": ctypes.c_int64, "i32": ctypes.c_int32}
TENSORS = {**DTYPES, "i32": torch.int32, "i64": torch.int64}


class RuntimeFailure(Exception):
    """A call of the runtime that failed; the text is nsrt_last_error."""


class TableInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("rows", ctypes.c_int64), ("dim", ctypes.c_int64),
                ("element_type", ctypes.c_int32), ("num_states", ctypes.c_int32),
                ("state_width", ctypes.c_int64 * 3)]


def build_folder():
    return Path(os.environ["NEUROSHARD_BUILD_DIR"])


def load_runtime():
    pointer, int32, int64, text = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64,
                                   ctypes.c_char_p)
    library = ctypes.CDLL(str(build_folder() / "lib" / "libneuroshard_runtime.so"),
                          mode=ctypes.RTLD_GLOBAL)
    signatures = {
        "nsrt_last_error": (text, []),
        "nsrt_world_open": (pointer, [text, int32]),
        "nsrt_make_backends": (pointer, [text, text, int32]),
        "nsrt_free_backends": (None, [pointer]),
        "nsrt_world_open_on": (pointer, [text, int32, pointer, text]),
        "nsrt_world_close": (None, [pointer]),
        "nsrt_world_num_devices": (int32, [pointer]),
        "nsrt_world_device": (pointer, [pointer, int32]),
        "nsrt_world_find_table": (int32, [pointer, text]),
        "nsrt_world_table_info": (int32, [pointer, int32, ctypes.POINTER(TableInfo)]),
        "nsrt_tensor_allocate": (pointer, [pointer, int64]),
        "nsrt_tensor_read": (int32, [pointer, pointer, pointer, int64]),
        "nsrt_tensor_write": (int32, [pointer, pointer, pointer, int64]),
        "nsrt_tensor_free": (None, [pointer]),
        "nsrt_table_write": (int32, [pointer, int32, int64, int64, pointer]),
        "nsrt_table_read": (int32, [pointer, int32, int64, int64, pointer]),
        "nsrt_state_write": (int32, [pointer, int32, int32, int64, int64, pointer]),
        "nsrt_state_read": (int32, [pointer, int32, int32, int64, int64, pointer]),
        "nsrt_device_use_stream": (int32, [pointer, pointer]),
        "nsrt_device_set_step": (int32, [pointer, ctypes.c_float, int64]),
        "nsrt_device_settle": (int32, [pointer]),
        "nsrt_device_average_copies": (int32, [pointer]),
        "nsrt_table_initialize": (int32, [pointer, int32, ctypes.c_uint64]),
        "nsrt_invoke_all": (int32, [pointer, text, ctypes.POINTER(ctypes.POINTER(pointer))]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_runtime = None


def runtime():
    global _runtime
    if _runtime is None:
        _runtime = load_runtime()
    return _runtime


def check(status):
    if status:
        raise RuntimeFailure(runtime().nsrt_last_error().decode())


def open_world(folder, threads_per_device, emulated, checks_late):
    """The handle of a world, which may run its kernels for GPUs in the emulator."""
    place = str(folder).encode()
    if not emulated:
        return runtime().nsrt_world_open(place, threads_per_device)
    backends = runtime().nsrt_make_backends(place, b"emulator", int(checks_late))
    if not backends:
        raise RuntimeFailure(runtime().nsrt_last_error().decode())
    try:
        return runtime().nsrt_world_open_on(place, threads_per_device, backends, None)
    finally:
        runtime().nsrt_free_backends(backends)


def descriptor_type(rank):
    class Descriptor(ctypes.Structure):
        _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p),
                    ("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * rank),
                    ("strides", ctypes.c_int64 * rank)]
    return Descriptor


DESCRIPTORS = {rank: descriptor_type(rank) for rank in (1, 2, 3, 4)}


class HostMemory:
    """Tensors of functions in memory of the host."""

    def place(self, tensor):
        """The address of the tensor's values for a function; the tensor outlives it."""
        return tensor.data_ptr()

    def strides(self, tensor):
        return tensor.stride()

    def read(self, address, count):
        return bytearray((ctypes.c_char * count).from_address(address))

    def close(self):
        pass


class DeviceMemory:
    """Tensors of functions in memory of a device, where arguments are copied to."""

    def __init__(self, device):
        self.device, self.copies = device, []

    def place(self, tensor):
        dense = tensor.contiguous()
        count = dense.numel() * dense.itemsize
        copy = runtime().nsrt_tensor_allocate(self.device, count)
        assert copy, "no memory of the device"
        self.copies.append(copy)
        check(runtime().nsrt_tensor_write(self.device, copy, dense.data_ptr(), count))
        return copy

    def strides(self, tensor):
        return tensor.contiguous().stride()

    def read(self, address, count):
        values = bytearray(count)
        to = (ctypes.c_char * count).from_buffer(values)
        check(runtime().nsrt_tensor_read(self.device, to, address, count))
        return values

    def close(self):
        for copy in self.copies:
            runtime().nsrt_tensor_free(copy)
        self.copies = []


class Kept:
    """A tensor in memory of a device, as functions return and take it."""

    def __init__(self, descriptor, dtype, memory):
        self.descriptor, self.dtype, self.memory = descriptor, dtype, memory

    def read(self):
        return read_tensor(self.descriptor, self.dtype, self.memory)

    def free(self):
        runtime().nsrt_tensor_free(self.descriptor.allocated)


def describe(tensor, memory):
    """The strided memref descriptor of a tensor whose last dimension is dense."""
    if isinstance(tensor, Kept):
        return tensor.descriptor
    assert tensor.is_contiguous() or tensor.stride(-1) == 1
    descriptor = DESCRIPTORS[tensor.dim()]()
    descriptor.allocated = descriptor.aligned = memory.place(tensor)
    descriptor.sizes[:] = tensor.shape
    descriptor.strides[:] = memory.strides(tensor)
    return descriptor


def read_tensor(descriptor, dtype, memory):
    shape, strides = list(descriptor.sizes), list(descriptor.strides)
    result = torch.empty(shape, dtype=dtype)
    if result.numel():
        span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
        begin = descriptor.aligned + descriptor.offset * dtype.itemsize
        flat = torch.frombuffer(memory.read(begin, span * dtype.itemsize), dtype=dtype)
        result.copy_(flat.as_strided(shape, strides))
    return result


def take(descriptor, dtype, memory):
    """Copies a returned memref into a tensor and frees it."""
    result = read_tensor(descriptor, dtype, memory)
    if descriptor.allocated:
        runtime().nsrt_tensor_free(descriptor.allocated)
    return result


@dataclass
class Frame:
    """One call on one device: the argument array, what keeps it alive, the results."""

    pointers: ctypes.Array
    keep: list
    results: ctypes.Structure | None
    memory: HostMemory | DeviceMemory


def result_structure(specs):
    fields = []
    for number, spec in enumerate(specs):
        if spec["kind"] == "tensor":
            type_ = DESCRIPTORS[len(spec["shape"])]
        elif spec["kind"] == "scalar":
            type_ = SCALARS[spec["type"]]
        else:
            type_ = ctypes.c_void_p
        fields.append((f"r{number}", type_))
    return type("Results", (ctypes.Structure,), {"_fields_": fields})


def argument_values(spec, value, memory):
    """The C values of one argument; a jagged one has two or three."""
    if spec["kind"] == "jagged":
        return [describe(tensor, memory) for tensor in value.tensors()]
    if spec["kind"] in ("tensor", "weights", "state"):
        return [describe(value, memory)]
    if spec["kind"] == "scalar":
        return [SCALARS[spec["type"]](value)]
    return [ctypes.c_void_p(value)]


class Function:
    """Calls of one function of a manifest: values in, values out."""

    def __init__(self, specs):
        self.arguments = [spec for spec in specs["args"] if spec["kind"] != "device"]
        self.takes_device = len(self.arguments) < len(specs["args"])
        self.results = specs["results"]
        self.touches_tensors = specs["touches_tensors"]

    def frame(self, device, values, memory=None):
        assert len(values) == len(self.arguments), "wrong number of arguments"
        memory = memory or HostMemory()
        keep, addresses = [list(values)], []
        results = result_structure(self.results)() if self.results else None
        if results is not None:
            addresses.append(ctypes.addressof(results))
        if self.takes_device:
            addresses.append(device)
        for spec, value in zip(self.arguments, values):
            for item in argument_values(spec, value, memory):
                keep.append(item)
                addresses.append(ctypes.addressof(item))
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        return Frame(pointers, keep, results, memory)

    def take_results(self, frame, keep=False):
        taken = []
        for number, spec in enumerate(self.results):
            value = getattr(frame.results, f"r{number}")
            if spec["kind"] == "tensor":
                value = (Kept if keep else take)(value, TENSORS[spec["type"]], frame.memory)
            taken.append(value)
        return taken


class World:
    """All devices of an artifact in this process. Tables are torch tensors."""

    def __init__(self, folder, threads_per_device=1, emulated=False, checks_late=False):
        self.environment = pytest.MonkeyPatch()
        self.emulated = emulated
        if emulated:  # as a GPU without memory in common with the host, and as late
            self.environment.setenv("NEUROSHARD_EMULATOR_OWN_MEMORY", "1")
            streams = os.environ.get("NEUROSHARD_EMULATOR_STREAMS", "late")
            self.environment.setenv("NEUROSHARD_EMULATOR_STREAMS", streams)
            self.environment.setenv("NEUROSHARD_EMULATOR_STREAM_RACES", "1")
        self.manifest = json.loads((Path(folder) / "manifest.json").read_text())
        self.functions = {name: Function(specs)
                          for name, specs in self.manifest["functions"].items()}
        self.sent = []  # a single device reads gradients where they are until the update
        self.handle = open_world(folder, threads_per_device, emulated, checks_late)
        if not self.handle:
            raise RuntimeFailure(runtime().nsrt_last_error().decode())
        self.devices = runtime().nsrt_world_num_devices(self.handle)

    def close(self):
        if self.handle:
            for frame in self.sent:
                frame.memory.close()
            self.sent = []
            runtime().nsrt_world_close(self.handle)
            self.handle = None
            self.environment.undo()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def table_info(self, name):
        index = runtime().nsrt_world_find_table(self.handle, name.encode())
        assert index >= 0, f"no table {name}"
        info = TableInfo()
        check(runtime().nsrt_world_table_info(self.handle, index, ctypes.byref(info)))
        return index, info

    def write_table(self, name, values):
        index, info = self.table_info(name)
        values = values.contiguous()
        assert values.dtype == list(DTYPES.values())[info.element_type]
        check(runtime().nsrt_table_write(self.handle, index, 0, info.rows, values.data_ptr()))

    def read_table(self, name):
        index, info = self.table_info(name)
        values = torch.empty((info.rows, info.dim), dtype=list(DTYPES.values())[info.element_type])
        check(runtime().nsrt_table_read(self.handle, index, 0, info.rows, values.data_ptr()))
        return values

    def read_states(self, name):
        index, info = self.table_info(name)
        states = []
        for number in range(info.num_states):
            values = torch.empty((info.rows, info.state_width[number]))
            check(runtime().nsrt_state_read(self.handle, index, number, 0, info.rows,
                                            values.data_ptr()))
            states.append(values)
        return states

    def write_states(self, name, states):
        index, info = self.table_info(name)
        for number, values in enumerate(states):
            values = values.contiguous()
            check(runtime().nsrt_state_write(self.handle, index, number, 0, info.rows,
                                             values.data_ptr()))

    def initialize(self, name, seed):
        check(runtime().nsrt_table_initialize(self.handle, self.table_info(name)[0], seed))

    def device_handles(self):
        return [runtime().nsrt_world_device(self.handle, rank) for rank in range(self.devices)]

    def average_copies(self):
        """Averages copies that drift, on all devices together."""
        def run(device):
            check(runtime().nsrt_device_average_copies(device))
        with ThreadPoolExecutor(self.devices) as threads:
            list(threads.map(run, self.device_handles()))

    def memory_of(self, function, device):
        on_host = not self.emulated or function.touches_tensors
        return HostMemory() if on_host else DeviceMemory(device)

    def keep(self, rank, tensor):
        """A copy of the tensor in memory of a device, until the world is closed."""
        memory = DeviceMemory(self.device_handles()[rank])
        return Kept(describe(tensor, memory), tensor.dtype, memory)

    def invoke_all(self, name, arrays):
        return runtime().nsrt_invoke_all(self.handle, name.encode(), arrays)

    def invoke(self, name, values, keep=False):
        """Runs a function on all devices; values[r] are its arguments on device r, without
        the device itself. Gives the results of each device. keep: tensors stay in memory of the
        device, as Kept."""
        function = self.functions[name]
        frames = [function.frame(device, values[rank], self.memory_of(function, device))
                  for rank, device in enumerate(self.device_handles())]
        pointer = ctypes.POINTER(ctypes.c_void_p)
        arrays = (pointer * self.devices)(
            *[ctypes.cast(frame.pointers, pointer) for frame in frames])
        status = self.invoke_all(name, arrays)
        message = runtime().nsrt_last_error().decode() if status else ""
        # "If the function ran, its results are valid to free whatever the status."
        results = [function.take_results(frame, keep) if frame.results is not None else []
                   for frame in frames]
        if name == "embeddings_gradients":
            self.sent += frames
        else:
            for frame in frames:
                frame.memory.close()
        if status:
            raise RuntimeFailure(message)
        return results
