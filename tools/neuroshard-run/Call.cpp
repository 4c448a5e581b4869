//===- Call.cpp - One call of a compiled function -------------------------===//

#include "Call.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace neuroshard::run {

/// Words of a strided descriptor: two pointers, offset, sizes, strides.
static int64_t descriptorWords(size_t rank) {
  return 3 + 2 * static_cast<int64_t>(rank);
}

Call::Call(std::span<const ValueSpec> specs)
    : resultSpecs(specs.begin(), specs.end()) {
  int64_t words = 0;
  for (const ValueSpec &spec : resultSpecs) {
    if (spec.kind != ValueSpec::Kind::Tensor)
      throw std::runtime_error("only functions whose results are tensors can "
                               "be driven");
    words += descriptorWords(spec.shape.size());
  }
  results.resize(words);
  if (words)
    pointers.push_back(results.data());
}

void Call::addTensor(const Tensor &tensor) {
  size_t rank = tensor.shape.size();
  std::vector<int64_t> words(descriptorWords(rank));
  words[0] = words[1] = reinterpret_cast<intptr_t>(tensor.bytes.data());
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    words[3 + i] = tensor.shape[i];
    words[3 + rank + i] = stride;
    stride *= tensor.shape[i];
  }
  descriptors.push_back(std::move(words));
  pointers.push_back(descriptors.back().data());
}

void Call::addTensors(const Value &value) {
  for (const Tensor &tensor : value)
    addTensor(tensor);
}

std::vector<Tensor> Call::takeResults() {
  std::vector<Tensor> taken;
  const int64_t *words = results.data();
  for (const ValueSpec &spec : resultSpecs) {
    size_t rank = spec.shape.size();
    Tensor tensor(spec.type, {words + 3, words + 3 + rank});
    // Results are new buffers, and so contiguous.
    const char *data = reinterpret_cast<const char *>(words[1]) +
                       words[2] * bytesOf(spec.type);
    if (!tensor.bytes.empty())
      std::memcpy(tensor.bytes.data(), data, tensor.bytes.size());
    std::free(reinterpret_cast<void *>(words[0]));
    taken.push_back(std::move(tensor));
    words += descriptorWords(rank);
  }
  return taken;
}

} // namespace neuroshard::run
