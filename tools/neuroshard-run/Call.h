//===- Call.h - One call of a compiled function ----------------*- C++ -*-===//
//
// Builds the argument array of an nsrt_invoke_<name> entry point (its layout is
// described in Runtime/HostABI.h) and takes the results out.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_RUN_CALL_H
#define NEUROSHARD_TOOLS_RUN_CALL_H

#include "Signature.h"
#include "Tensor.h"

#include "neuroshard/Runtime/HostABI.h"

#include <deque>
#include <span>

namespace neuroshard::run {

class Call {
public:
  /// A call of a function with these results, which must be tensors. Throws
  /// std::runtime_error otherwise.
  explicit Call(std::span<const ValueSpec> results);
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  void addDevice(nsrt_device *device) { pointers.push_back(device); }
  /// The tensors must outlive the call.
  void addTensor(const Tensor &tensor);
  void addTensors(const Value &value);

  /// The argument array, valid until something is added.
  void **arguments() { return pointers.data(); }
  /// Copies the results and frees them. To be called once, after the call.
  std::vector<Tensor> takeResults();

private:
  std::vector<void *> pointers;
  /// Memref descriptors, as words.
  std::deque<std::vector<int64_t>> descriptors;
  std::vector<ValueSpec> resultSpecs;
  std::vector<int64_t> results;
};

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_CALL_H
