"""The C library of neuroshard.cuda: its structs, functions and errors, as
include/neuroshard/RuntimeCuda/CudaABI.h has them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_float, c_int32, c_int64, c_uint64, c_void_p

from neuroshard._native.binaries import cuda_library
from neuroshard.errors import Error

VERSION = 4
# Of one table; those that an optimizer has come first.
MOST_STATES = 3


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
    _fields_ = [("weights", c_void_p), ("state0", c_void_p), ("state1", c_void_p),
                ("state2", c_void_p)]


class _Options(Structure):
    _fields_ = [("initialize", c_int32), ("num_slots", c_int32), ("seed", c_uint64),
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
                *((name, c_int32) for name in ("element_type", "num_states", "num_row_states",
                                               "trainable", "two_phase", "reserved")),
                ("weight_stride", c_int64), ("state_stride", c_int64 * MOST_STATES),
                ("weight_bytes", c_int64), ("state_bytes", c_int64 * MOST_STATES),
                ("weights", c_void_p), ("states", c_void_p * MOST_STATES)]

    @property
    def rows(self) -> int:
        return self.row_end - self.row_begin

    @property
    def columns(self) -> int:
        return self.col_end - self.col_begin

    def is_row_state(self, state: int) -> bool:
        """Whether a state has one value per row and not per element: the last ones have."""
        return self.num_states - self.num_row_states <= state < self.num_states


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
    """Norms of a two-phase slot, per_row for each of its distinct rows (nsc_norms)."""

    _fields_ = [("norms", c_void_p), ("capacity", c_int64), ("run_range", c_void_p),
                ("per_row", c_int64)]


_SIGNATURES = {
    "nsc_version": [], "nsc_available": [], "nsc_last_error": [c_void_p],
    "nsc_open": [c_char_p, c_int32, c_int32, POINTER(_Options), POINTER(c_void_p)],
    "nsc_check_artifact": [c_char_p, c_int32],
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


def load_library() -> ctypes.CDLL:
    """The C library; loaded once."""
    global _library
    if _library is None:
        path = cuda_library()
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            raise CudaError(f"{path} cannot be loaded ({error}); NEUROSHARD_CUDA_LIBRARY names "
                            "another") from None
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, name, None)
            if function is None:
                raise CudaError(f"{path} has no {name}: it is not the GPU runtime, or another "
                                "version of it; take library and package from one build")
            function.argtypes = arguments
            function.restype = {"nsc_last_error": c_char_p, "nsc_close": None}.get(name, c_int32)
        if library.nsc_version() != VERSION:
            raise CudaError(f"{path} has version {library.nsc_version()}, expected {VERSION}: "
                            "take library and package from one build")
        _library = library
    return _library


def check(status: int, device: int | None = None) -> None:
    """Raises what a function of the library has returned."""
    if status:
        message = load_library().nsc_last_error(device)
        raise _ERRORS.get(status, CudaError)(message.decode(errors="replace"))
