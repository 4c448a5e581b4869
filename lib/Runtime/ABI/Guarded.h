//===- Guarded.h - Exceptions as failures of a step -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_ABI_GUARDED_H
#define NEUROSHARD_LIB_RUNTIME_ABI_GUARDED_H

#include "Device/Device.h"

#include <exception>
#include <string>

namespace neuroshard::runtime {

/// Runs `function` unless the step has failed. Returns true if it succeeded.
template <typename Function>
bool guarded(nsrt_device *device, const Function &function) noexcept {
  if (device->failed())
    return false;
  try {
    function();
    return true;
  } catch (const CommunicatorError &error) {
    device->recordFailure(error.what()); // the cause on another rank
  } catch (const std::exception &error) {
    std::string cause;
    try {
      cause = "rank " + std::to_string(device->rank()) + ": " + error.what();
    } catch (...) {
      // Out of memory even for the text: the failure counts all the same.
    }
    device->recordFailure(cause);
    device->communicator->abort(device->error);
  }
  return false;
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_ABI_GUARDED_H
