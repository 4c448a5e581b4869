//===- Backends.h - Backends that run the kernels of GPUs -------*- C++ -*-===//

#ifndef NEUROSHARD_RUNTIMECUDA_BACKENDS_H
#define NEUROSHARD_RUNTIMECUDA_BACKENDS_H

#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/RuntimeCuda/CudaABI.h"

/// Makes what opens a world (Runtime/OpenOn.h) on the GPU kernels of the
/// artifact in `directory`, run by the driver or the emulator in the library
/// `driver`; null: the process's (CudaDriver::get). Null on failure;
/// nsc_last_error(NULL) says why.
extern "C" neuroshard::runtime::BackendFactory *
nsc_make_backends(const char *directory, const char *driver);

/// Null is allowed.
extern "C" void nsc_free_backends(neuroshard::runtime::BackendFactory *);

#endif // NEUROSHARD_RUNTIMECUDA_BACKENDS_H
