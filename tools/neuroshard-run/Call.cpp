//===- Call.cpp - Calls compiled functions by descriptors -----------------===//

#include "Call.h"

#include <cstring>
#include <stdexcept>

namespace neuroshard::run {

/// Words of a strided descriptor: two pointers, offset, sizes, strides.
static int64_t descriptorWords(size_t rank) {
  return 3 + 2 * static_cast<int64_t>(rank);
}

static int64_t wordsOf(const ValueSpec &spec) {
  if (spec.kind == ValueKind::Tensor)
    return descriptorWords(spec.shape.size());
  if (spec.kind == ValueKind::Handle)
    return 1;
  throw std::runtime_error("only functions whose results are tensors or "
                           "handles can be driven");
}

static void check(int32_t status) {
  if (status)
    throw std::runtime_error(nsrt_last_error());
}

Call::Call(std::span<const ValueSpec> specs, Memory memory)
    : memory(memory), resultSpecs(specs.begin(), specs.end()) {
  int64_t size = 0;
  for (const ValueSpec &spec : resultSpecs)
    size += wordsOf(spec);
  results.resize(size);
  if (size)
    pointers.push_back(results.data());
}

Call::~Call() {
  for (void *copy : copies)
    nsrt_tensor_free(copy);
}

intptr_t Call::addressOf(const Tensor &tensor) {
  if (memory == Memory::Host)
    return reinterpret_cast<intptr_t>(tensor.bytes.data());
  auto bytes = static_cast<int64_t>(tensor.bytes.size());
  void *copy = nsrt_tensor_allocate(device, bytes);
  if (!copy)
    throw std::runtime_error("no memory for an argument of " +
                             std::to_string(bytes) + " bytes");
  copies.push_back(copy);
  check(nsrt_tensor_write(device, copy, tensor.bytes.data(), bytes));
  return reinterpret_cast<intptr_t>(copy);
}

void Call::addTensor(const Tensor &tensor) {
  size_t rank = tensor.shape.size();
  std::vector<int64_t> descriptor(descriptorWords(rank));
  descriptor[0] = descriptor[1] = addressOf(tensor);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    descriptor[3 + i] = tensor.shape[i];
    descriptor[3 + rank + i] = stride;
    stride *= tensor.shape[i];
  }
  words.push_back(std::move(descriptor));
  pointers.push_back(words.back().data());
}

void Call::addTensors(const Value &value) {
  for (const Tensor &tensor : value)
    addTensor(tensor);
}

void Call::addWord(int64_t word) {
  words.push_back({word});
  pointers.push_back(words.back().data());
}

void Call::addFloat(float value) {
  int64_t word = 0;
  std::memcpy(&word, &value, sizeof(value));
  addWord(word);
}

void Call::addResult(const Result &result) {
  if (result.handle)
    addHandle(result.handle);
  else
    addTensor(result.tensor);
}

/// Copies the tensor that a descriptor refers to and frees it.
Tensor Call::takeTensor(const ValueSpec &spec,
                        const int64_t *descriptor) const {
  size_t rank = spec.shape.size();
  Tensor tensor(spec.type, {descriptor + 3, descriptor + 3 + rank});
  // Results are new buffers, and so contiguous.
  const char *data = reinterpret_cast<const char *>(descriptor[1]) +
                     descriptor[2] * bytesOf(spec.type);
  if (memory == Memory::Device)
    check(nsrt_tensor_read(device, tensor.bytes.data(), data,
                           static_cast<int64_t>(tensor.bytes.size())));
  else if (!tensor.bytes.empty())
    std::memcpy(tensor.bytes.data(), data, tensor.bytes.size());
  nsrt_tensor_free(reinterpret_cast<void *>(descriptor[0]));
  return tensor;
}

std::vector<Result> Call::takeResults() {
  std::vector<Result> taken;
  const int64_t *next = results.data();
  for (const ValueSpec &spec : resultSpecs) {
    Result &result = taken.emplace_back();
    if (spec.kind == ValueKind::Tensor)
      result.tensor = takeTensor(spec, next);
    else
      result.handle = reinterpret_cast<void *>(*next);
    next += wordsOf(spec);
  }
  return taken;
}

} // namespace neuroshard::run
