//===- Status.h - Failures that carry a status of the C API ----*- C++ -*-===//
//
// Inside the library every failure is an exception; CudaABI.cpp turns it into
// a status and a message. A RuntimeError is NSC_ERROR.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_STATUS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_STATUS_H

#include "neuroshard/Artifact/Error.h"
#include "neuroshard/RuntimeCuda/CudaABI.h"

#include <cstdint>

namespace neuroshard::cuda {

using runtime::fail;

class StatusError : public runtime::RuntimeError {
public:
  StatusError(nsc_status status, const std::string &message)
      : RuntimeError(message), status(status) {}

  nsc_status status;
};

/// Throws a StatusError whose message is the parts streamed together.
template <typename... Parts>
[[noreturn]] void failWith(nsc_status status, const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw StatusError(status, text.str());
}

/// Does an address that a caller gave have this alignment?
inline bool isMultiple(const void *pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_STATUS_H
