"""One device of a compiled artifact on a GPU."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Sequence
from ctypes import Structure, byref, c_void_p

from neuroshard import _fields
from neuroshard.cuda._arrays import (ELEMENT_DTYPES, ELEMENT_TYPES, Found, address, check_tables,
                                     look_at, take)
from neuroshard.cuda._library import (MOST_STATES, CudaError, Info, Lookup, Memory, Norms, Part, Slot, _Input,
                                      _Options, _Output, _SlotMemory, check, load_library)
from neuroshard.cuda._step_arguments import (ELEMENT_BYTES, Input, array_of,
                                             check_outputs, make_part,
                                             native_gradients, native_input, native_outputs,
                                             reading_of, within)

INFERENCE, TRAINING, TRAINING_JOINED = range(3)
EMULATOR = "NeuroShard emulator"  # as nsc_info.gpu has it; its memory is the host's


def available() -> str:
    """Why no GPU can be used; "" if one can."""
    library = load_library()
    return library.nsc_last_error(None).decode() if library.nsc_available() else ""


def check_artifact(artifact: str | os.PathLike, plan_device: int = 0) -> None:
    """Raises a CudaError unless manifest and GPU program are as neuroshard-compile wrote them: for
    those who take sizes from the manifest before they open the device."""
    path = _fields.path(artifact, "artifact")
    plan_device = within(plan_device, "plan_device", 0, 2**31 - 1)
    check(load_library().nsc_check_artifact(os.fsencode(path), plan_device))


def slot_memory(memory: Iterable[Sequence] | None) -> list[tuple] | None:
    """(weights, state0, state1, state2) of each slot."""
    if memory is None:
        return None
    slots = []
    for number, slot in enumerate(_fields.items(memory, "memory",
                                                "(weights, state0, state1, state2)")):
        arrays = _fields.items(slot, f"memory[{number}]", "arrays")
        if not 1 <= len(arrays) <= 1 + MOST_STATES:
            raise CudaError(f"memory[{number}]: expected (weights, state0, state1, state2), found "
                            f"{len(arrays)} arrays")
        slots.append((*arrays, *[None] * (1 + MOST_STATES - len(arrays))))
    return slots


def stream_of(stream: object) -> int | None:
    if stream is None or isinstance(stream, int) and 0 <= stream < 2**64:
        return stream
    raise CudaError("stream: expected None or the number of a CUDA stream, as "
                    "torch.cuda.current_stream().cuda_stream has it, found "
                    f"{_fields.shown(stream)}")


class Device:
    """One device of an artifact, opened on a GPU. Calls of several threads run one by one."""

    def __init__(self, artifact: str | os.PathLike, plan_device: int = 0, gpu: int = 0, *,
                 seed: int | None = 0, memory: Iterable[Sequence] | None = None) -> None:
        """seed None leaves the weights unwritten; memory: (weights, state0, state1, state2) of each
        slot, which the caller owns and must not free before close()."""
        self._handle, self._lock = None, threading.RLock()
        self._trained: Sequence[Part] = ()
        path = _fields.path(artifact, "artifact")
        plan_device = within(plan_device, "plan_device", 0, 2**31 - 1)
        gpu = within(gpu, "gpu", 0, 2**31 - 1)
        if seed is not None:
            seed = within(seed, "seed", 0, 2**64 - 1)
        self._memory = slot_memory(memory)
        self._lib = load_library()
        # The caller's memory is written only after its size has been checked.
        options = _Options(initialize=seed is not None and memory is None, seed=seed or 0)
        if self._memory:
            slots = [_SlotMemory(*[address(array, f"memory[{number}]") for array in arrays])
                     for number, arrays in enumerate(self._memory)]
            options.slots = (_SlotMemory * len(slots))(*slots)
            options.num_slots = len(slots)
        handle = c_void_p()
        check(self._lib.nsc_open(os.fsencode(path), plan_device, gpu, byref(options),
                                 byref(handle)))
        self._handle = handle.value
        try:
            self._describe(gpu)
            if self._memory is not None:
                check_tables(self._memory, self.slots, self._place)
                if seed is not None:
                    self.initialize(seed)
        except BaseException:
            self.close()
            raise

    def _describe(self, gpu: int) -> None:
        self.info = self._get("nsc_get_info", Info)
        self.lookups = [self._get("nsc_get_lookup", Lookup, index)
                        for index in range(self.info.num_lookups)]
        self.slots = [self._get("nsc_get_slot", Slot, index)
                      for index in range(self.info.num_slots)]
        self._place = "cpu" if self.info.gpu.decode() == EMULATOR else f"cuda:{gpu}"
        readers: list[list[Lookup]] = [[] for _ in range(self.info.num_exchanges)]
        for lookup in self.lookups:
            readers[lookup.exchange].append(lookup)
        self._readings = [reading_of(lookups) for lookups in readers]

    def close(self) -> None:
        with self._lock:
            if self._handle:
                self._lib.nsc_close(self._handle)
                self._handle = None
            self._trained = ()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, name: str, *arguments: object) -> None:
        with self._lock:
            if not self._handle:
                raise CudaError("the device is closed")
            check(getattr(self._lib, name)(self._handle, *arguments), self._handle)

    def _get(self, name: str, kind: type, *index: int) -> Structure:
        result = kind()
        self._call(name, *index, byref(result))
        return result

    @property
    def memory(self) -> Memory:
        return self._get("nsc_get_memory", Memory)

    def initialize(self, seed: int) -> None:
        self._call("nsc_initialize", within(seed, "seed", 0, 2**64 - 1))

    # Rows [begin, end) of a slot, copied from or to dense host arrays.

    def read_weights(self, slot: int, values: object, begin: int, end: int) -> None:
        self._copy("nsc_read_weights", slot, None, values, begin, end)

    def write_weights(self, slot: int, values: object, begin: int, end: int) -> None:
        self._copy("nsc_write_weights", slot, None, values, begin, end)

    def read_state(self, slot: int, state: int, values: object, begin: int, end: int) -> None:
        self._copy("nsc_read_state", slot, state, values, begin, end)

    def write_state(self, slot: int, state: int, values: object, begin: int, end: int) -> None:
        self._copy("nsc_write_state", slot, state, values, begin, end)

    def _copy(self, name: str, slot: int, state: int | None, values: object, begin: int,
              end: int) -> None:
        slot = self._slot(slot)
        where = [slot] if state is None else [slot, within(state, "state", 0, 2**31 - 1)]
        begin, end = (within(row, which, -2**62, 2**62)
                      for row, which in ((begin, "begin"), (end, "end")))
        found = look_at(values, "values")
        if isinstance(found, Found) and 0 <= begin <= end:
            self._check_rows(slot, state, values, found, end - begin, "read" in name)
        self._call(name, *where, begin, end, address(values, "values"))

    def _slot(self, slot: int) -> int:
        number = _fields.whole(slot, "slot")
        if not 0 <= number < len(self.slots):
            raise CudaError(f"there is no slot {number}; the device has {len(self.slots)}")
        return number

    def _check_rows(self, slot: int, state: int | None, values: object, found: Found, rows: int,
                    written: bool) -> None:
        """Raises unless the array has the type and size of the rows."""
        of = self.slots[slot]
        element = "f32" if state is not None else ELEMENT_TYPES[of.element_type]
        dtype = ELEMENT_DTYPES[element]
        # Not every package has bfloat16.
        take(values, "values", (dtype, *(() if element == "f32" else ("uint16", "int16"))), "cpu")
        if written and not found.writable:
            raise CudaError("values: expected an array that can be written to, found a read-only "
                            "one")
        by_row = state is not None and of.is_row_state(state)
        expected = rows * (1 if by_row else of.columns) * ELEMENT_BYTES[element]
        if found.size * found.itemsize != expected:
            raise CudaError(f"slot {slot}: {rows} rows are {expected} bytes, the array has "
                            f"{found.size * found.itemsize}")

    # Steps. Parts are an array of Part, as make_parts and parts_of give, or a list of them.

    def make_parts(self, inputs: Iterable[Input],
                   outputs: Iterable[tuple[object, int]]) -> ctypes.Array:
        """One part per lookup: outputs are (array or None, stride in elements)."""
        given = _fields.items(inputs, "inputs", "cuda.Input")
        if len(given) != len(self._readings):
            raise CudaError(f"inputs: expected {len(self._readings)}, one for each jagged input "
                            f"of the model, found {len(given)}")
        native = [native_input(one, number, self._readings[number], self._place)
                  for number, one in enumerate(given)]
        wanted, arrays = native_outputs(outputs)
        parts = (Part * len(self.lookups))()
        self._call("nsc_make_parts", (_Input * len(native))(*native), len(native),
                   (_Output * len(wanted))(*wanted), len(wanted), parts)
        check_outputs(parts, arrays, self.lookups, self._place)
        return parts

    def part(self, lookup: int, ids: object, offsets: object, out: object, out_stride: int, *,
             bags: int = 0, pooling: int = 0, feature: int = 0, id_begin: int = 0,
             id_end: int | None = None, exact: bool = True,
             sample_weights: object = None) -> Part:
        """cuda.part() for a lookup of this device: also types, places and sizes of arrays are
        checked."""
        number = _fields.whole(lookup, "lookup")
        if not 0 <= number < len(self.lookups):
            raise CudaError(f"there is no lookup {number}; the device has {len(self.lookups)}")
        return make_part(self.lookups[number], self._place, number, ids, offsets, out, out_stride,
                         bags=bags, pooling=pooling, feature=feature, id_begin=id_begin,
                         id_end=id_end, exact=exact, sample_weights=sample_weights)

    def forward(self, parts: ctypes.Array | Iterable[Part], training: int = INFERENCE,
                stream: int | None = None) -> None:
        parts, training = array_of(Part, parts, "parts"), within(training, "training", 0, 2)
        with self._lock:
            self._call("nsc_forward", parts, len(parts), training, stream_of(stream))
            if training:
                # Arrays in foreign memory may be freed before the backward, so they are not kept.
                self._trained = parts if parts._b_needsfree_ else ()

    def prepare(self, parts: ctypes.Array | Iterable[Part], training: int = INFERENCE,
                stream: int | None = None) -> None:
        parts = array_of(Part, parts, "parts")
        self._call("nsc_prepare", parts, len(parts), within(training, "training", 0, 2),
                   stream_of(stream))

    def set_step(self, learning_rate: float, step: int = 1, stream: int | None = None) -> None:
        self._call("nsc_set_step", _fields.learning_rate(learning_rate),
                   within(step, "step", 1, 2**62), stream_of(stream))

    def backward(self, gradients: Iterable[tuple] | ctypes.Array,
                 stream: int | None = None) -> None:
        """gradients: (array, stride[, gradient of the sample weights]) of each part, or an array
        of Gradient."""
        with self._lock:
            native = native_gradients(gradients, self._trained, self.lookups, self._place)
            self._call("nsc_backward", native, len(native), stream_of(stream))

    def norms(self, slot: int) -> Norms:
        return self._get("nsc_get_norms", Norms, self._slot(slot))

    def backward_apply(self, stream: int | None = None) -> None:
        self._call("nsc_backward_apply", stream_of(stream))

    def check(self, stream: int | None = None) -> None:
        """Waits for the stream; raises BadId if an id since the last check was out of range."""
        self._call("nsc_check", stream_of(stream))
