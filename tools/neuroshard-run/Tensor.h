//===- Tensor.h - Host tensors of arguments and results ---------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_TENSOR_H
#define NEUROSHARD_TOOLS_RUN_TENSOR_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace neuroshard::run {

/// Bytes of one element of f32, f16, bf16, i32 or i64. Throws
/// std::runtime_error for another type.
inline int64_t bytesOf(const std::string &type) {
  if (type == "i64")
    return 8;
  if (type == "f32" || type == "i32")
    return 4;
  if (type == "f16" || type == "bf16")
    return 2;
  throw std::runtime_error("cannot pass or take tensors of type " + type);
}

/// A dense row-major array.
struct Tensor {
  std::string type;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  Tensor() = default;
  Tensor(std::string elementType, std::vector<int64_t> sizes)
      : type(std::move(elementType)), shape(std::move(sizes)),
        bytes(elements() * bytesOf(type)) {}

  int64_t elements() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                           std::multiplies<>());
  }
  template <typename T> T *as() { return reinterpret_cast<T *>(bytes.data()); }
  template <typename T> const T *as() const {
    return reinterpret_cast<const T *>(bytes.data());
  }
};

/// One argument of a function: a tensor, or the two or three of a jagged one
/// (ids, offsets, sample weights).
using Value = std::vector<Tensor>;

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_TENSOR_H
