"""The build's CUDA runtime on the emulator, and arrays in the emulator's guarded memory.

Every array ends in front of a page that nobody may touch: a kernel that reads or writes behind
it fails with a message. Importing this chooses the emulator as the driver."""

import ctypes
import os
import re
from pathlib import Path

import numpy
import torch

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
EMULATOR = BUILD / "lib" / "libneuroshard_emulator.so"
os.environ["NEUROSHARD_CUDA_DRIVER"] = str(EMULATOR)
os.environ.setdefault("NEUROSHARD_CUDA_LIBRARY", str(BUILD / "lib" / "libneuroshard_cuda.so"))


def unusable():
    """Why the emulator cannot be used in this build; "" if it can."""
    if re.search(r"^NEUROSHARD_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(), re.M):
        return "a plain interpreter cannot load libraries with sanitizers"
    return "" if EMULATOR.exists() else f"{EMULATOR.name} is not built"


_library = None


def emulator():
    global _library
    if _library is None:
        _library = ctypes.CDLL(str(EMULATOR))
        _library.nse_allocate.argtypes, _library.nse_allocate.restype = (
            [ctypes.c_int64], ctypes.c_void_p)
        _library.nse_free.argtypes = [ctypes.c_void_p]
    return _library


class Memory:
    """Tensors in guarded memory, all freed by close(), which sees writes beside them."""

    def __init__(self):
        self.addresses = []

    def empty(self, count, dtype):
        """`count` elements; the memory is full of 0xFF."""
        size = count * dtype.itemsize
        address = emulator().nse_allocate(size)
        assert address, f"no {size} bytes of emulated memory"
        self.addresses.append(address)
        if not count:
            return Empty(address)
        return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype)

    def copy(self, values):
        placed = self.empty(values.numel(), values.dtype)
        if values.numel():
            placed.copy_(values.reshape(-1))
        return placed

    def rows(self, count, columns, stride, dtype, value):
        """(memory, view): rows of `stride` elements, of which the last ends with its columns."""
        memory = self.empty((count - 1) * stride + columns if count else 0, dtype)
        if not count:
            return memory, torch.empty((0, columns), dtype=dtype)
        memory.fill_(value)
        return memory, memory.as_strided((count, columns), (stride, 1))

    def close(self):
        damaged = [address for address in self.addresses if emulator().nse_free(address)]
        self.addresses = []
        assert not damaged, "somebody wrote just beside an array of the test"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
            return
        for address in self.addresses:
            emulator().nse_free(address)


class Empty:
    """An array without elements, which still has an address."""

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address

    def numel(self):
        return 0


def numbers_at(address, count, dtype):
    """Memory of the runtime, as numpy sees it."""
    if not count:
        return numpy.empty(0, dtype)
    size = count * numpy.dtype(dtype).itemsize
    return numpy.frombuffer((ctypes.c_char * size).from_address(address), dtype)
