//===- Guard.h - Exceptions as statuses of the C interface -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_ABI_GUARD_H
#define NEUROSHARD_LIB_RUNTIMECUDA_ABI_GUARD_H

#include "Driver/Status.h"

#include <new>
#include <string>

#define NSC_EXPORT extern "C" __attribute__((visibility("default")))

namespace neuroshard::cuda {

/// The message of the last call of this thread without a device.
inline std::string &threadError() {
  thread_local std::string error;
  return error;
}

/// Runs a function. Turns exceptions into a status and a message.
template <typename Function>
nsc_status guard(std::string &message, Function function) noexcept {
  message.clear();
  nsc_status status = NSC_ERROR;
  try {
    try {
      function();
      return NSC_OK;
    } catch (const StatusError &error) {
      status = error.status;
      message = error.what();
    } catch (const std::bad_alloc &) {
      status = NSC_OUT_OF_MEMORY;
      message = "no host memory";
    } catch (const std::exception &error) {
      message = error.what();
    }
  } catch (...) { // not even memory for the message
    status = NSC_OUT_OF_MEMORY;
  }
  return status;
}

template <typename T> T &checked(T *result, const char *what) {
  if (!result)
    fail(what, " is null");
  return *result;
}

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_ABI_GUARD_H
