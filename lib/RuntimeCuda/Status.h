//===- Status.h - Failures that carry a status of the C API ----*- C++ -*-===//
//
// Inside the library every failure is an exception; CudaABI.cpp turns it into
// a status and a message. A RuntimeError is NSC_ERROR.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STATUS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STATUS_H

#include "../Runtime/Error.h"
#include "neuroshard/Runtime/CudaABI.h"

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

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STATUS_H
