//===- Status.h - Exceptions with a status of the C API --------*- C++ -*-===//
//
// Every failure inside the library is an exception, which CudaABI.cpp turns
// into a status and a message: a StatusError into its own, others into
// NSC_ERROR.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_STATUS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_STATUS_H

#include "neuroshard/Artifact/Error.h"
#include "neuroshard/RuntimeCuda/CudaABI.h"

#include <cstdint>

namespace neuroshard::cuda {

class StatusError : public RuntimeError {
public:
  StatusError(nsc_status status, const std::string &message)
      : RuntimeError(message), status(status) {}

  nsc_status status;
};

/// Throws a StatusError. The message is all values in order.
template <typename... Values>
[[noreturn]] void failWith(nsc_status status, const Values &...values) {
  std::ostringstream text;
  (text << ... << values);
  throw StatusError(status, text.str());
}

/// Whether an address is aligned to `bytes`.
inline bool isMultiple(const void *pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_STATUS_H
