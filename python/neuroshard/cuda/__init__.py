"""Runs one device of a compiled artifact on a GPU, from Python.

A thin layer over include/neuroshard/RuntimeCuda/CudaABI.h, which says what each call does, by
ctypes. It needs libneuroshard_cuda.so and no other package; arrays may be of torch, CuPy or
numpy (numpy only with the emulator as driver), or addresses as numbers. Types, devices and sizes
of arrays are checked; addresses are not.

    device = cuda.Device("artifact", seed=7)
    parts = device.make_parts([cuda.Input(ids, offsets, batch=64)], [(out, 128)])
    device.forward(parts, stream=torch.cuda.current_stream().cuda_stream)
    device.check()
"""

from neuroshard._native.binaries import cuda_library as library_path
from neuroshard.cuda._arrays import address
from neuroshard.cuda._device import (EMULATOR, INFERENCE, TRAINING, TRAINING_JOINED, Device,
                                     available, check_artifact)
from neuroshard.cuda._library import (_SIGNATURES, VERSION, BadId, CudaError, Gradient, Info,
                                      Lookup, Memory, NoDriver, Norms, OutOfMemory, Part, Slot,
                                      _Input, _Options, _Output, _SlotMemory, load_library)
from neuroshard.cuda._step_arguments import (ELEMENT_BYTES, ELEMENT_TYPES, Input,
                                             count, part, parts_of, within)

__all__ = ["ELEMENT_BYTES", "ELEMENT_TYPES", "EMULATOR", "INFERENCE", "TRAINING",
           "TRAINING_JOINED", "VERSION", "BadId", "CudaError", "Device", "Gradient", "Info",
           "Input", "Lookup", "Memory", "NoDriver", "Norms", "OutOfMemory", "Part", "Slot",
           "address", "available", "check_artifact", "count", "library_path", "load_library",
           "part", "parts_of", "within", "_SIGNATURES", "_Input", "_Options", "_Output",
           "_SlotMemory"]

for _public in (CudaError, BadId, NoDriver, OutOfMemory):
    _public.__module__ = __name__
