//===- HostCall.h - Calls of compiled host functions -----------*- C++ -*-===//
//
// Turns tensors into the descriptors that compiled functions take and back.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_HOSTCALL_H
#define NEUROSHARD_LIB_RUNTIMETORCH_HOSTCALL_H

#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace neuroshard::runtime {

/// The kind of a function's result: a handle (a pointer) or a tensor.
struct ResultSpec {
  bool handle = false;
  at::ScalarType type = at::kFloat;
  int64_t rank = 0;

  /// 64-bit words of its descriptor.
  int64_t words() const { return handle ? 1 : 3 + 2 * rank; }
};

/// The results of each step function of an artifact. Throws a RuntimeError for
/// a result that is neither a handle nor a tensor of a known type.
std::map<std::string, std::vector<ResultSpec>>
resultsOf(const Manifest &manifest);

/// Throws a RuntimeError for a name that is no type of tensors.
at::ScalarType scalarTypeOf(const std::string &name);

/// The results of one call. Frees the tensors that are not taken.
class Results {
public:
  Results() = default;
  explicit Results(const std::vector<ResultSpec> &specs);
  Results(Results &&) noexcept;
  Results &operator=(Results &&) noexcept;
  ~Results();

  size_t size() const { return specs.size(); }
  /// Whether a function has run: it writes sizes or handles that are not 0.
  bool areWritten() const;
  bool isHandle(size_t index) const { return specs[index].handle; }
  void *handle(size_t index) const;
  /// A tensor on `device` that owns the memory of result `index`.
  at::Tensor take(size_t index, c10::Device device);
  /// Splits off the results from `first` on.
  Results splitFrom(size_t first);

  int64_t *data() { return words.data(); }
  int64_t *wordsOf(size_t index) { return words.data() + begins[index]; }

private:
  void reset();

  std::vector<ResultSpec> specs;
  std::vector<int64_t> begins;
  std::vector<int64_t> words;
};

/// The arguments of one call.
class HostCall {
public:
  HostCall(nsrt_device *device, Results &results);

  /// `tensor` must outlive the call.
  void addTensor(const at::Tensor &tensor);
  /// Columns of a matrix, as a tensor.
  void addColumns(const at::Tensor &matrix, int64_t first, int64_t count);
  void addFloat(float value);
  void addInteger(int64_t value);
  /// Results of an earlier function.
  void addResults(Results &earlier);

  /// Returns nsrt_invoke's status.
  int32_t invoke(const char *function);

private:
  /// Those of a tensor of two dimensions need no memory of their own.
  using Words = c10::SmallVector<int64_t, 8>;

  void addWords(Words words);

  nsrt_device *device;
  std::deque<Words> storage;
  std::vector<void *> arguments;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_HOSTCALL_H
