//===- Call.h - Calls compiled functions by descriptors ---------*- C++ -*-===//
//
// Builds the argument array of an nsrt_invoke_<name> entry point (its layout is
// described in Runtime/DriverABI.h) and takes the results out.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_RUN_CALL_H
#define NEUROSHARD_TOOLS_RUN_CALL_H

#include "Signature.h"
#include "Tensor.h"

#include "neuroshard/Runtime/DriverABI.h"

#include <deque>
#include <span>

namespace neuroshard::run {

/// What a function has returned: a tensor, or a handle of the runtime.
struct Result {
  Tensor tensor;
  void *handle = nullptr;
};

/// Where functions have their tensors.
enum class Memory {
  Host,
  Device, ///< arguments are copied there, and results back.
};

class Call {
public:
  /// A call of a function with these results. Throws std::runtime_error if one
  /// is neither a tensor nor a handle.
  explicit Call(std::span<const ValueSpec> results,
                Memory memory = Memory::Host);
  ~Call();
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  void addDevice(nsrt_device *added) {
    device = added;
    pointers.push_back(added);
  }
  /// The tensors must outlive the call. Those in memory of a device come after
  /// it.
  void addTensor(const Tensor &tensor);
  void addTensors(const Value &value);
  void addHandle(void *handle) { addWord(reinterpret_cast<intptr_t>(handle)); }
  void addInteger(int64_t value) { addWord(value); }
  void addFloat(float value);
  /// Passes on what another function has returned.
  void addResult(const Result &result);

  /// The argument array, valid until something is added.
  void **arguments() { return pointers.data(); }
  /// Copies the results and frees them. To be called once, after the call.
  std::vector<Result> takeResults();

private:
  void addWord(int64_t word);
  /// The memory of a tensor as the function has it.
  intptr_t addressOf(const Tensor &tensor);
  Tensor takeTensor(const ValueSpec &spec, const int64_t *descriptor) const;

  Memory memory;
  nsrt_device *device = nullptr;
  std::vector<void *> copies; ///< in memory of the device.

  std::vector<void *> pointers;
  /// Memref descriptors and scalars, as words.
  std::deque<std::vector<int64_t>> words;
  std::vector<ValueSpec> resultSpecs;
  std::vector<int64_t> results;
};

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_CALL_H
