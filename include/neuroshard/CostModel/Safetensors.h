//===- Safetensors.h - Named tensors in one file ----------------*- C++ -*-===//
///
/// \file
/// Reads and writes the safetensors format: an 8-byte little-endian length, a
/// JSON header (name -> dtype, shape, byte range; `__metadata__`: string ->
/// string), the data. Model files and measured samples are kept in it: a column
/// of a data set is a one-dimensional tensor.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_SAFETENSORS_H
#define NEUROSHARD_COSTMODEL_SAFETENSORS_H

#include "neuroshard/Serialization/Files.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

enum class TensorType { U8, I32, I64, F32, F64 };

struct Tensor {
  TensorType type = TensorType::F32;
  std::vector<int64_t> shape;
  /// Row-major, little-endian.
  std::vector<std::byte> bytes;

  int64_t elementCount() const;
};

/// Makes a tensor of the element type of `values`: uint8_t, int32_t, int64_t,
/// float or double. An empty shape stands for {values.size()}.
template <typename T>
Tensor makeTensor(std::span<const T> values, std::vector<int64_t> shape = {});

class TensorFile {
public:
  std::map<std::string, std::string> metadata;
  std::map<std::string, Tensor> tensors;

  /// The values of a tensor of exactly this element type and shape; -1 in
  /// `shape` matches any extent. An error names the tensor, what was expected
  /// and what was found.
  template <typename T>
  Expected<std::vector<T>> get(const std::string &name,
                               const std::vector<int64_t> &shape) const;
  /// A metadata entry; an error if there is none.
  Expected<std::string> getMetadata(const std::string &key) const;
};

/// Errors name the file and what is wrong with it: truncated, not JSON, a range
/// outside the file or overlapping another, an unknown type, a shape that does
/// not fit its range.
Expected<TensorFile> readTensorFile(const std::string &path);
/// The same for the bytes of a file.
Expected<TensorFile> parseTensorFile(std::string_view bytes,
                                     const std::string &path);

/// What `parse` makes of the file at `path`. Errors name the file.
template <typename Parse>
auto readTensorFile(const std::string &path, Parse parse) {
  return readTensorFile(path).and_then([&](const TensorFile &file) {
    return parse(file).map_error(
        [&](Diagnostics errors) { return inFile(path, std::move(errors)); });
  });
}

/// Writes beside `path` and renames, so that an interrupted call leaves the
/// earlier file whole.
Expected<void> writeTensorFile(const TensorFile &file, const std::string &path);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_SAFETENSORS_H
