"""Checks of the arrays that callers pass to neuroshard.cuda. Numbers are addresses and are not
checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from neuroshard import _fields
from neuroshard.cuda._library import CudaError, Slot

ARRAYS = "an array of torch, CuPy or numpy, an address or None"
# Types in the array interfaces of numpy and CuPy; numpy itself has no bfloat16.
INTERFACE_TYPES = {"<i4": "int32", "<i8": "int64", "<f4": "float32", "<f2": "float16",
                   "<V2": "bfloat16", "|V2": "bfloat16", "<u2": "uint16", "<i2": "int16",
                   "|u1": "uint8", "|i1": "int8"}
ELEMENT_DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
ELEMENT_TYPES = tuple(ELEMENT_DTYPES)  # by nsc_slot.element_type
RAW = ("uint8", "int8")


class Found(NamedTuple):
    """An array. Strides are in elements; place: "cpu", "cuda:0", or "cuda" if it does not say of
    which GPU; "" if it says nothing."""

    address: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    place: str
    writable: bool = True

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def extent(self) -> int:
        """Elements from the first to behind the last."""
        if not self.size:
            return 0
        return 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides))

    def is_contiguous(self) -> bool:
        return self.size == 0 or all(
            n == 1 or stride == expected for n, stride, expected in
            zip(self.shape, self.strides, dense_strides(self.shape)))


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def look_at(array: Any, name: str) -> Found | int | None:
    """The properties of an array. Addresses and None are returned as they are."""
    if array is None:
        return None
    if isinstance(array, int) and not isinstance(array, bool):
        if not 0 <= array < 2**64:
            raise CudaError(f"{name}: expected {ARRAYS}, found the number {array}")
        return array
    if hasattr(array, "data_ptr") and hasattr(array, "numel"):
        return from_torch(array, name)
    for attribute, place in (("__cuda_array_interface__", "cuda"),
                             ("__array_interface__", "cpu")):
        interface = getattr(array, attribute, None)
        if isinstance(interface, dict):
            return from_interface(interface, place)
    raise CudaError(f"{name}: expected {ARRAYS}, found {type(array).__name__}")


def from_torch(array: Any, name: str) -> Found:
    layout = str(getattr(array, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise CudaError(f"{name}: expected a dense tensor, found one of layout {layout}")
    place = array.device if hasattr(array, "device") else None
    if place is not None and place.type not in ("cpu", "cuda"):
        raise CudaError(f"{name}: expected memory of a GPU, found a tensor on {place}")
    if not hasattr(array, "stride"):  # an address and a number of elements
        return Found(array.data_ptr(), "", 0, (array.numel(),), (1,), "")
    where = str(place)
    if where == "cpu" and array.is_pinned():
        where = ""  # pinned memory, which a GPU can read too
    return Found(array.data_ptr(), str(array.dtype).removeprefix("torch."), array.element_size(),
                 tuple(array.shape), tuple(array.stride()), where)


def from_interface(interface: dict[str, Any], place: str) -> Found:
    typestr, shape = interface["typestr"], tuple(interface["shape"])
    itemsize = int(typestr[2:])
    strides = interface.get("strides")
    strides = (dense_strides(shape) if strides is None
               else tuple(stride // itemsize if stride % itemsize == 0 else -1
                          for stride in strides))
    address, readonly = interface["data"]
    return Found(address, INTERFACE_TYPES.get(typestr, typestr), itemsize, shape, strides, place,
                 not readonly)


def address(array: object, name: str = "array") -> int | None:
    """The address of an array of torch, CuPy or numpy; numbers are returned as they are."""
    found = look_at(array, name)
    return found.address if isinstance(found, Found) else found


def length(array: object, name: str) -> int:
    found = look_at(array, name)
    if not isinstance(found, Found):
        raise CudaError(f"{name}: expected an array, found {_fields.shown(array)}; of an address, "
                        "say how many elements there are")
    return found.size


# Checks. `place` is the device on which kernels read; "" for any.


def check_type(found: Found, name: str, dtypes: Sequence[str]) -> None:
    if found.dtype and found.dtype not in dtypes:
        raise CudaError(f"{name}: expected {' or '.join(dtypes)}, found {found.dtype}")


def check_place(found: Found, name: str, place: str) -> None:
    if not place or not found.place or found.place == place:
        return
    if found.place == "cuda" and place.startswith("cuda"):
        return
    stand_in = " (the driver is the emulator)" if place == "cpu" else ""
    raise CudaError(f"{name}: expected an array on {place}{stand_in}, found one on {found.place}")


def take(array: object, name: str, dtypes: Sequence[str], place: str, least: int = 0
         ) -> int | None:
    """The address of a contiguous array of at least `least` elements."""
    found = look_at(array, name)
    if not isinstance(found, Found):
        return found
    check_type(found, name, dtypes)
    check_place(found, name, place)
    if not found.is_contiguous():
        raise CudaError(f"{name}: expected a contiguous array, found shape {found.shape} with "
                        f"strides {found.strides}")
    if found.size < least:
        raise CudaError(f"{name}: expected {least} elements, found {found.size}")
    return found.address


def check_rows(array: object, name: str, dtypes: Sequence[str], place: str, rows: int,
               columns: int, stride: int) -> None:
    """Raises unless an array holds `rows` rows of `columns` elements, `stride` elements from one to
    the next."""
    found = look_at(array, name)
    if not isinstance(found, Found):
        return
    check_type(found, name, dtypes)
    check_place(found, name, place)
    own = (stride if len(found.shape) < 2 or found.shape[0] < 2 else found.strides[0],
           *found.strides[-1:])
    if len(found.shape) > 2 or own not in ((stride, 1), (stride,)) and found.size > 1:
        raise CudaError(f"{name}: expected rows with {stride} elements from one to the next, as "
                        f"its stride says, found shape {found.shape} with strides "
                        f"{found.strides}")
    needed = (rows - 1) * stride + columns if rows else 0
    if found.extent < needed:
        raise CudaError(f"{name}: expected {rows} rows of {columns} elements, {stride} from one "
                        f"to the next, which are {needed}, found {found.extent}")


def check_tables(memory: list[tuple], slots: Sequence[Slot], place: str) -> None:
    """Checks arrays for the weights and states of tables, (weights, state0, state1, state2) for each of
    `slots`, on `place`."""
    if len(memory) != len(slots):
        raise CudaError(f"expected memory for {len(slots)} slots, found it for "
                        f"{len(memory)}")
    for number, (slot, arrays) in enumerate(zip(slots, memory)):
        weights = ELEMENT_DTYPES[ELEMENT_TYPES[slot.element_type]]
        names = ("weights", "state0", "state1", "state2")
        for index, (array, name) in enumerate(zip(arrays, names)):
            found = look_at(array, name)
            if not isinstance(found, Found):
                continue
            name = f'memory[{number}], {name} of table "{slot.table.decode()}"'
            take(array, name, (weights if index == 0 else "float32", *RAW), place)
            expected = slot.weight_bytes if index == 0 else slot.state_bytes[index - 1]
            if found.size * found.itemsize < expected:
                raise CudaError(f"{name}: expected {expected} bytes (rows are padded to 16), "
                                f"found {found.size * found.itemsize}")
