//===- HostCall.cpp - Calls of compiled host functions --------------------===//
//
// Descriptors are arrays of 64-bit words, which live until the call returns.
//
//===----------------------------------------------------------------------===//

#include "HostCall.h"

#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/StepNames.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace neuroshard::runtime {

at::ScalarType scalarTypeOf(const std::string &name) {
  static const std::map<std::string, at::ScalarType> kTypes = {
      {"f32", at::kFloat},
      {"f16", at::kHalf},
      {"bf16", at::kBFloat16},
      {"i32", at::kInt},
      {"i64", at::kLong}};
  auto found = kTypes.find(name);
  if (found == kTypes.end())
    fail("manifest: a result has type \"", name,
         "\"; expected one of \"f32\", \"f16\", \"bf16\", \"i32\", \"i64\"");
  return found->second;
}

namespace {

ResultSpec describe(const ValueSpec &value) {
  if (value.kind == ValueKind::Handle)
    return {.handle = true};
  if (value.kind != ValueKind::Tensor)
    fail("manifest: a result is neither a handle nor a tensor");
  return {.type = scalarTypeOf(value.type),
          .rank = static_cast<int64_t>(value.shape.size())};
}

} // namespace

std::map<std::string, std::vector<ResultSpec>>
resultsOf(const Manifest &manifest) {
  std::map<std::string, std::vector<ResultSpec>> results;
  for (const FunctionSpec &function : manifest.functions)
    for (const char *name : kStepNames)
      if (function.name == name) {
        std::vector<ResultSpec> &specs = results[name];
        for (const ValueSpec &value : function.results)
          specs.push_back(describe(value));
      }
  return results;
}

Results::Results(const std::vector<ResultSpec> &resultSpecs)
    : specs(resultSpecs) {
  int64_t size = 0;
  for (const ResultSpec &spec : specs) {
    begins.push_back(size);
    size += spec.words();
  }
  words.resize(static_cast<size_t>(size));
}

Results::Results(Results &&other) noexcept { *this = std::move(other); }

Results &Results::operator=(Results &&other) noexcept {
  if (this == &other)
    return *this;
  reset();
  specs = std::exchange(other.specs, {});
  begins = std::exchange(other.begins, {});
  words = std::exchange(other.words, {});
  return *this;
}

Results::~Results() { reset(); }

void Results::reset() {
  for (size_t i = 0; i < specs.size(); ++i)
    if (!specs[i].handle)
      nsrt_tensor_free(reinterpret_cast<void *>(*wordsOf(i)));
  specs.clear();
}

bool Results::areWritten() const {
  return std::any_of(words.begin(), words.end(),
                     [](int64_t word) { return word != 0; });
}

void *Results::handle(size_t index) const {
  return reinterpret_cast<void *>(words[static_cast<size_t>(begins[index])]);
}

at::Tensor Results::take(size_t index, c10::Device device) {
  const ResultSpec &spec = specs[index];
  int64_t *descriptor = wordsOf(index);
  void *allocated = reinterpret_cast<void *>(
      std::exchange(descriptor[0], 0)); // the tensor frees it
  auto *aligned =
      reinterpret_cast<std::byte *>(descriptor[1]) +
      descriptor[2] * static_cast<int64_t>(c10::elementSize(spec.type));
  at::IntArrayRef sizes(descriptor + 3, static_cast<size_t>(spec.rank));
  return at::from_blob(
      aligned, sizes, [allocated](void *) { nsrt_tensor_free(allocated); },
      at::TensorOptions(spec.type).device(device), device);
}

Results Results::splitFrom(size_t first) {
  std::vector<ResultSpec> rest(specs.begin() + static_cast<int64_t>(first),
                               specs.end());
  Results split(rest);
  if (first < specs.size())
    std::copy(words.begin() + begins[first], words.end(), split.words.begin());
  specs.resize(first);
  return split;
}

HostCall::HostCall(nsrt_device *device, Results &results) : device(device) {
  if (results.size() > 0)
    arguments.push_back(results.data());
  arguments.push_back(device); // the handle itself, not a pointer to it
}

void HostCall::addWords(Words words) {
  storage.push_back(std::move(words));
  arguments.push_back(storage.back().data());
}

void HostCall::addTensor(const at::Tensor &tensor) {
  auto data = reinterpret_cast<intptr_t>(tensor.const_data_ptr());
  Words words = {data, data, 0};
  words.append(tensor.sizes().begin(), tensor.sizes().end());
  words.append(tensor.strides().begin(), tensor.strides().end());
  addWords(std::move(words));
}

void HostCall::addColumns(const at::Tensor &matrix, int64_t first,
                          int64_t count) {
  auto data = reinterpret_cast<intptr_t>(matrix.const_data_ptr());
  data += first * matrix.stride(1) * static_cast<int64_t>(matrix.itemsize());
  addWords({data, data, 0, matrix.size(0), count, matrix.stride(0),
            matrix.stride(1)});
}

void HostCall::addFloat(float value) {
  int64_t word = 0;
  std::memcpy(&word, &value, sizeof(value));
  addWords({word});
}

void HostCall::addInteger(int64_t value) { addWords({value}); }

void HostCall::addResults(Results &earlier) {
  for (size_t i = 0; i < earlier.size(); ++i)
    arguments.push_back(earlier.wordsOf(i));
}

int32_t HostCall::invoke(const char *function) {
  return nsrt_invoke(device, function, arguments.data());
}

} // namespace neuroshard::runtime
