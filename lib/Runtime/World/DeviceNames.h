//===- DeviceNames.h - Backends by the name of a device ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_WORLD_DEVICENAMES_H
#define NEUROSHARD_LIB_RUNTIME_WORLD_DEVICENAMES_H

#include "neuroshard/Runtime/Backend.h"

#include <memory>
#include <string>

namespace neuroshard::runtime {

/// See nsrt_make_backends. Throws a std::exception.
std::unique_ptr<BackendFactory> makeBackends(const std::string &directory,
                                             const std::string &device,
                                             IdCheck check);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_WORLD_DEVICENAMES_H
