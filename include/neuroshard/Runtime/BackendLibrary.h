//===- BackendLibrary.h - Entry point of the GPU library --------*- C++ -*-===//

#ifndef NEUROSHARD_RUNTIME_BACKENDLIBRARY_H
#define NEUROSHARD_RUNTIME_BACKENDLIBRARY_H

#include "neuroshard/Runtime/Backend.h"

#define NSRT_MAKE_BACKENDS_SYMBOL "nsc_make_backends"

/// Makes backends for the GPU kernels of the artifact in `directory`, run by
/// the driver or the emulator in the library `driver`; null: the process's. All
/// ranks get GPU `gpu`; negative: they take turns. The caller deletes the
/// result. Throws a std::exception.
extern "C" neuroshard::runtime::BackendFactory *
nsc_make_backends(const char *directory, const char *driver, int32_t gpu,
                  neuroshard::runtime::IdCheck check);

#endif // NEUROSHARD_RUNTIME_BACKENDLIBRARY_H
