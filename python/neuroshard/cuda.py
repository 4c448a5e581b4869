"""Runs one device of a compiled artifact on a GPU, from Python.

A thin layer over include/neuroshard/Runtime/CudaABI.h, which says what each call does, by
ctypes. It needs libneuroshard_cuda.so and no other package; arrays may be of torch, CuPy or
numpy (the latter only with a stand-in for the driver), or addresses as numbers.

    device = cuda.Device("artifact", seed=7)
    parts = device.make_parts([cuda.Input(ids, offsets, batch=64)], [(out, 128)])
    device.forward(parts, stream=torch.cuda.current_stream().cuda_stream)
    device.check()
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int32, c_int64, c_uint64, c_void_p
from pathlib import Path
from typing import NamedTuple

from neuroshard.errors import Error

VERSION = 1
INFERENCE, TRAINING, TRAINING_JOINED = range(3)
ELEMENT_TYPES = ("f32", "f16", "bf16")
ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}


class CudaError(Error):
    """A call that failed; the text says why."""


class BadId(CudaError):
    """An id outside of its table; the text names table, feature, position and id."""


class NoDriver(CudaError):
    """This machine has no CUDA driver or no GPU."""


class OutOfMemory(CudaError):
    """The GPU or the host has too little memory."""


_ERRORS = {2: BadId, 3: NoDriver, 4: OutOfMemory}


# The structs of CudaABI.h, field by field.


class _SlotMemory(Structure):
    _fields_ = [("weights", c_void_p), ("state0", c_void_p), ("state1", c_void_p)]


class _Options(Structure):
    _fields_ = [("initialize", c_int32), ("reserved", c_int32), ("seed", c_uint64),
                ("slots", POINTER(_SlotMemory))]


class Info(Structure):
    """What was opened (nsc_info). Texts are bytes."""

    _fields_ = [("gpu", c_char_p), ("image", c_char_p), ("module", c_char_p),
                *((name, c_int32) for name in ("capability", "driver", "num_slots",
                                               "num_lookups", "num_exchanges", "two_phase"))]


class Memory(Structure):
    """Bytes of device memory by use (nsc_memory)."""

    _fields_ = [(name, c_int64) for name in ("weights", "states", "step", "arrays")]

    @property
    def total(self) -> int:
        return self.weights + self.states + self.step + self.arrays


class Slot(Structure):
    """A shard of the device (nsc_slot)."""

    _fields_ = [("table", c_char_p), ("shard", c_char_p),
                *((name, c_int64) for name in ("row_begin", "row_end", "col_begin", "col_end")),
                *((name, c_int32) for name in ("element_type", "num_states", "row_state",
                                               "trainable", "two_phase", "reserved")),
                *((name, c_int64) for name in ("weight_stride", "state_stride", "weight_bytes",
                                               "state_bytes")),
                ("weights", c_void_p), ("states", c_void_p * 2)]

    @property
    def rows(self) -> int:
        return self.row_end - self.row_begin

    @property
    def columns(self) -> int:
        return self.col_end - self.col_begin


class Lookup(Structure):
    """A lookup on a slot (nsc_lookup)."""

    _fields_ = [("input", c_char_p), ("feature", c_char_p),
                *((name, c_int32) for name in ("exchange", "feature_index", "slot", "id_bytes",
                                               "pooled", "mean", "weighted", "output_type")),
                ("dim", c_int64)]


class Part(Structure):
    """Ids for one lookup on one slot, and where its results go (nsc_part)."""

    _fields_ = [*((name, c_int32) for name in ("lookup", "exact", "feature", "reserved")),
                ("ids", c_void_p), ("offsets", c_void_p), ("sample_weights", c_void_p),
                *((name, c_int64) for name in ("id_begin", "id_end", "bags", "pooling")),
                ("out", c_void_p), ("out_stride", c_int64)]


class _Input(Structure):
    _fields_ = [("ids", c_void_p), ("offsets", c_void_p), ("sample_weights", c_void_p),
                ("feature_begin", POINTER(c_int64)),
                *((name, c_int64) for name in ("num_ids", "batch", "pooling"))]


class _Output(Structure):
    _fields_ = [("out", c_void_p), ("stride", c_int64)]


class Gradient(Structure):
    """Of one part's results (nsc_gradient)."""

    _fields_ = [("gradient", c_void_p), ("stride", c_int64), ("weight_gradient", c_void_p)]


class Norms(Structure):
    """Squared norms of a two-phase slot (nsc_norms)."""

    _fields_ = [("norms", c_void_p), ("capacity", c_int64), ("run_range", c_void_p)]


class Input(NamedTuple):
    """A jagged input with the ids of whole tables (nsc_input). feature_begin: host numbers."""

    ids: object
    offsets: object = None
    batch: int = 0
    pooling: int = 0
    num_ids: int | None = None
    sample_weights: object = None
    feature_begin: Sequence[int] | None = None


def address(array: object) -> int | None:
    """Where an array begins: of torch, CuPy or numpy, or a number."""
    if array is None or isinstance(array, int):
        return array
    if hasattr(array, "data_ptr"):
        return array.data_ptr()
    if hasattr(array, "__cuda_array_interface__"):
        return array.__cuda_array_interface__["data"][0]
    return array.ctypes.data


def _length(array: object) -> int:
    return array.numel() if hasattr(array, "numel") else array.size


_SIGNATURES = {
    "nsc_version": [], "nsc_available": [], "nsc_last_error": [c_void_p],
    "nsc_open": [c_char_p, c_int32, c_int32, POINTER(_Options), POINTER(c_void_p)],
    "nsc_close": [c_void_p],
    "nsc_get_info": [c_void_p, POINTER(Info)],
    "nsc_get_memory": [c_void_p, POINTER(Memory)],
    "nsc_get_slot": [c_void_p, c_int32, POINTER(Slot)],
    "nsc_get_lookup": [c_void_p, c_int32, POINTER(Lookup)],
    "nsc_get_norms": [c_void_p, c_int32, POINTER(Norms)],
    "nsc_initialize": [c_void_p, c_uint64],
    **{f"nsc_{verb}_weights": [c_void_p, c_int32, c_int64, c_int64, c_void_p]
       for verb in ("read", "write")},
    **{f"nsc_{verb}_state": [c_void_p, c_int32, c_int32, c_int64, c_int64, c_void_p]
       for verb in ("read", "write")},
    "nsc_make_parts": [c_void_p, POINTER(_Input), c_int32, POINTER(_Output), c_int32,
                       POINTER(Part)],
    **{name: [c_void_p, POINTER(Part), c_int32, c_int32, c_void_p]
       for name in ("nsc_forward", "nsc_prepare")},
    "nsc_set_step": [c_void_p, c_float, c_int64, c_void_p],
    "nsc_backward": [c_void_p, POINTER(Gradient), c_int32, c_void_p],
    "nsc_backward_apply": [c_void_p, c_void_p],
    "nsc_check": [c_void_p, c_void_p],
}

_library: ctypes.CDLL | None = None


def library_path() -> str:
    """NEUROSHARD_CUDA_LIBRARY, else the library of the build or the prefix that this package
    is in, else what the system finds."""
    if named := os.environ.get("NEUROSHARD_CUDA_LIBRARY"):
        return named
    name = "libneuroshard_cuda.so"
    for folder in Path(os.path.abspath(__file__)).parents:
        for candidate in (folder / name, folder / "lib" / name):
            if candidate.exists():
                return str(candidate)
    return name


def load_library() -> ctypes.CDLL:
    """The C library; loaded once."""
    global _library
    if _library is None:
        path = library_path()
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            raise CudaError(f"{path} cannot be loaded ({error}); NEUROSHARD_CUDA_LIBRARY names "
                            "another") from None
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes = arguments
            function.restype = {"nsc_last_error": c_char_p, "nsc_close": None}.get(name, c_int32)
        if library.nsc_version() != VERSION:
            raise CudaError(f"{path} has version {library.nsc_version()}, expected {VERSION}: "
                            "take library and package from one build")
        _library = library
    return _library


def _check(status: int, device: int | None = None) -> None:
    if status:
        raise _ERRORS.get(status, CudaError)(load_library().nsc_last_error(device).decode())


def available() -> str:
    """Why there is no GPU to run on; "" if there is one."""
    library = load_library()
    return library.nsc_last_error(None).decode() if library.nsc_available() else ""


class Device:
    """One device of an artifact, opened on a GPU."""

    def __init__(self, artifact: str | os.PathLike, plan_device: int = 0, gpu: int = 0, *,
                 seed: int | None = 0, memory: Iterable[Sequence] | None = None) -> None:
        """seed None leaves the weights unwritten; memory: (weights, state0, state1) of each
        slot, which the caller owns and must not free before close()."""
        self._handle = None
        self._lib = load_library()
        options = _Options(initialize=seed is not None, seed=seed or 0)
        self._memory = None if memory is None else list(memory)
        if self._memory is not None:
            slots = [_SlotMemory(*[address(array) for array in slot]) for slot in self._memory]
            options.slots = (_SlotMemory * len(slots))(*slots)
        handle = c_void_p()
        _check(self._lib.nsc_open(os.fsencode(artifact), plan_device, gpu, byref(options),
                                  byref(handle)))
        self._handle = handle.value
        self.info = self._get("nsc_get_info", Info)
        self.lookups = [self._get("nsc_get_lookup", Lookup, index)
                        for index in range(self.info.num_lookups)]
        self.slots = [self._get("nsc_get_slot", Slot, index)
                      for index in range(self.info.num_slots)]

    def close(self) -> None:
        if self._handle:
            self._lib.nsc_close(self._handle)
            self._handle = None

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, name: str, *arguments: object) -> None:
        if not self._handle:
            raise CudaError("the device is closed")
        _check(getattr(self._lib, name)(self._handle, *arguments), self._handle)

    def _get(self, name: str, kind: type, *index: int) -> Structure:
        result = kind()
        self._call(name, *index, byref(result))
        return result

    @property
    def memory(self) -> Memory:
        return self._get("nsc_get_memory", Memory)

    def initialize(self, seed: int) -> None:
        self._call("nsc_initialize", seed)

    # Rows [begin, end) of a slot, copied from or to dense host arrays.

    def read_weights(self, slot: int, values: object, begin: int, end: int) -> None:
        self._check_rows(slot, None, values, begin, end)
        self._call("nsc_read_weights", slot, begin, end, address(values))

    def write_weights(self, slot: int, values: object, begin: int, end: int) -> None:
        self._check_rows(slot, None, values, begin, end)
        self._call("nsc_write_weights", slot, begin, end, address(values))

    def read_state(self, slot: int, state: int, values: object, begin: int, end: int) -> None:
        self._check_rows(slot, state, values, begin, end)
        self._call("nsc_read_state", slot, state, begin, end, address(values))

    def write_state(self, slot: int, state: int, values: object, begin: int, end: int) -> None:
        self._check_rows(slot, state, values, begin, end)
        self._call("nsc_write_state", slot, state, begin, end, address(values))

    def _check_rows(self, slot: int, state: int | None, values: object, begin: int,
                    end: int) -> None:
        """Refuses an array of another size; what is wrong with the rest the library says."""
        found = getattr(values, "nbytes", None)
        if found is None or not 0 <= slot < len(self.slots) or end < begin:
            return
        of = self.slots[slot]
        element = ELEMENT_BYTES[ELEMENT_TYPES[of.element_type]] if state is None else 4
        by_row = state is not None and bool(of.row_state)
        expected = (end - begin) * (1 if by_row else of.columns) * element
        if found != expected:
            raise CudaError(f"slot {slot}: rows {begin} to {end} are {expected} bytes, the array "
                            f"has {found}")

    # Steps. Parts are an array of Part, as make_parts and parts_of give.

    def make_parts(self, inputs: Iterable[Input],
                   outputs: Iterable[tuple[object, int]]) -> ctypes.Array:
        """One part per lookup: outputs are (array or None, stride in elements)."""
        native = [self._native(given) for given in inputs]
        wanted = [_Output(address(out), stride) for out, stride in outputs]
        parts = (Part * len(self.lookups))()
        self._call("nsc_make_parts", (_Input * len(native))(*native), len(native),
                   (_Output * len(wanted))(*wanted), len(wanted), parts)
        return parts

    @staticmethod
    def _native(given: Input) -> _Input:
        begin = given.feature_begin
        return _Input(address(given.ids), address(given.offsets), address(given.sample_weights),
                      None if begin is None else (c_int64 * len(begin))(*begin),
                      _length(given.ids) if given.num_ids is None else given.num_ids,
                      given.batch, given.pooling)

    def forward(self, parts: ctypes.Array, training: int = INFERENCE,
                stream: int | None = None) -> None:
        self._call("nsc_forward", parts, len(parts), training, stream)

    def prepare(self, parts: ctypes.Array, training: int = INFERENCE,
                stream: int | None = None) -> None:
        self._call("nsc_prepare", parts, len(parts), training, stream)

    def set_step(self, learning_rate: float, step: int = 1, stream: int | None = None) -> None:
        self._call("nsc_set_step", learning_rate, step, stream)

    def backward(self, gradients: Iterable[tuple] | ctypes.Array,
                 stream: int | None = None) -> None:
        """gradients: (array, stride[, gradient of the sample weights]) of each part, or an array
        of Gradient."""
        if not isinstance(gradients, ctypes.Array):
            native = [Gradient(address(gradient), stride, *map(address, more))
                      for gradient, stride, *more in gradients]
            gradients = (Gradient * len(native))(*native)
        self._call("nsc_backward", gradients, len(gradients), stream)

    def norms(self, slot: int) -> Norms:
        return self._get("nsc_get_norms", Norms, slot)

    def backward_apply(self, stream: int | None = None) -> None:
        self._call("nsc_backward_apply", stream)

    def check(self, stream: int | None = None) -> None:
        """Waits for the stream; raises BadId if an id since the last check was none."""
        self._call("nsc_check", stream)


def parts_of(parts: Iterable[Part]) -> ctypes.Array:
    """An array of parts, as Device.forward takes it."""
    parts = list(parts)
    return (Part * len(parts))(*parts)


def part(lookup: int, ids: object, offsets: object, out: object, out_stride: int, *,
         bags: int = 0, pooling: int = 0, feature: int = 0, id_begin: int = 0,
         id_end: int | None = None, exact: bool = True, sample_weights: object = None) -> Part:
    """One part; arrays may be numbers. What they belong to must outlive the step."""
    return Part(lookup, exact, feature, 0, address(ids), address(offsets),
                address(sample_weights), id_begin, _length(ids) if id_end is None else id_end,
                bags, pooling, address(out), out_stride)
