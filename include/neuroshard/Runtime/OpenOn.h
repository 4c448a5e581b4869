//===- OpenOn.h - Opens an artifact on other backends -----------*- C++ -*-===//
//
// For worlds whose kernels do not run on the threads of the host. C++, since
// the caller passes what makes the backends.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_OPENON_H
#define NEUROSHARD_RUNTIME_OPENON_H

#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/DriverABI.h"

/// As nsrt_world_open, with the backends that `backends` makes. It must live
/// until this function returns, and its library until the world is closed.
extern "C" nsrt_world *
nsrt_world_open_on(const char *directory, int32_t threads_per_device,
                   neuroshard::runtime::BackendFactory *backends);

#endif // NEUROSHARD_RUNTIME_OPENON_H
