//===- SafetensorsWriter.cpp - Writes safetensors files -------------------===//

#include "neuroshard/CostModel/Safetensors.h"

#include "SafetensorsTypes.h"

#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/Printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

using namespace neuroshard;
using namespace neuroshard::safetensors;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "tensors are kept little-endian and copied as they are");

namespace {

/// The header's length is a multiple of this, so that the data is aligned.
constexpr size_t kAlignment = 8;

template <typename T> constexpr TensorType tensorTypeOf() {
  if constexpr (std::is_same_v<T, uint8_t>)
    return TensorType::U8;
  else if constexpr (std::is_same_v<T, int32_t>)
    return TensorType::I32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return TensorType::I64;
  else if constexpr (std::is_same_v<T, float>)
    return TensorType::F32;
  else
    return TensorType::F64;
}

std::vector<std::map<std::string, Tensor>::const_iterator>
writingOrder(const TensorFile &file) {
  std::vector<std::map<std::string, Tensor>::const_iterator> order;
  for (auto it = file.tensors.begin(); it != file.tensors.end(); ++it)
    order.push_back(it);
  std::stable_sort(order.begin(), order.end(), [](auto a, auto b) {
    return infoOf(a->second.type).bytes > infoOf(b->second.type).bytes;
  });
  return order;
}

/// Whether the header can name a tensor so: as text, and apart from its own
/// entry.
bool canName(const std::string &name) {
  std::string text =
      json(name).dump(-1, ' ', false, json::error_handler_t::replace);
  return name != "__metadata__" && json::parse(text) == name;
}

Expected<std::string> serialize(const TensorFile &file,
                                const std::string &path) {
  json header = json::object();
  if (!file.metadata.empty())
    header["__metadata__"] = file.metadata;
  uint64_t offset = 0;
  auto order = writingOrder(file);
  for (auto it : order) {
    const auto &[name, tensor] = *it;
    if (!canName(name))
      return failure(path, "tensor '" + printable(name) +
                               "': a name must be UTF-8 and another than "
                               "'__metadata__'; rename it");
    std::optional<uint64_t> expected = byteCount(tensor.type, tensor.shape);
    if (!expected || *expected != tensor.bytes.size())
      return failure(path, "tensor '" + name +
                               "': " + describe(tensor.type, tensor.shape) +
                               " does not fit its " +
                               std::to_string(tensor.bytes.size()) + " bytes");
    header[name] = {{"dtype", infoOf(tensor.type).name},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + *expected}}};
    offset += *expected;
  }
  std::string text =
      header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  uint64_t length = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  bytes += text;
  bytes.reserve(bytes.size() + offset);
  for (auto it : order)
    bytes.append(reinterpret_cast<const char *>(it->second.bytes.data()),
                 it->second.bytes.size());
  return bytes;
}

bool matches(const std::vector<int64_t> &shape,
             const std::vector<int64_t> &wanted) {
  return std::equal(
      shape.begin(), shape.end(), wanted.begin(), wanted.end(),
      [](int64_t found, int64_t want) { return want < 0 || found == want; });
}

} // namespace

std::string safetensors::describe(TensorType type,
                                  const std::vector<int64_t> &shape) {
  std::string text(infoOf(type).name);
  text += " [";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += i ? ", " : "";
    text += shape[i] < 0 ? "any" : std::to_string(shape[i]);
  }
  return text + "]";
}

std::optional<uint64_t>
safetensors::byteCount(TensorType type, const std::vector<int64_t> &shape) {
  uint64_t bytes = infoOf(type).bytes;
  for (int64_t extent : shape) {
    uint64_t factor = static_cast<uint64_t>(extent);
    if (factor && bytes > std::numeric_limits<uint64_t>::max() / factor)
      return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

int64_t Tensor::elementCount() const {
  return static_cast<int64_t>(bytes.size() / infoOf(type).bytes);
}

template <typename T>
Tensor neuroshard::makeTensor(std::span<const T> values,
                              std::vector<int64_t> shape) {
  if (shape.empty())
    shape = {static_cast<int64_t>(values.size())};
  Tensor tensor{tensorTypeOf<T>(), std::move(shape),
                std::vector<std::byte>(values.size_bytes())};
  if (!values.empty())
    std::memcpy(tensor.bytes.data(), values.data(), values.size_bytes());
  return tensor;
}

template <typename T>
Expected<std::vector<T>>
TensorFile::get(const std::string &name,
                const std::vector<int64_t> &shape) const {
  auto found = tensors.find(name);
  std::string wanted = "expected " + describe(tensorTypeOf<T>(), shape);
  if (found == tensors.end())
    return failure(name, "no such tensor, " + wanted);
  const Tensor &tensor = found->second;
  if (tensor.type != tensorTypeOf<T>() || !matches(tensor.shape, shape))
    return failure(name,
                   wanted + ", got " + describe(tensor.type, tensor.shape));
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

Expected<std::string> TensorFile::getMetadata(const std::string &key) const {
  auto found = metadata.find(key);
  if (found == metadata.end())
    return failure("metadata", "no entry '" + key + "'");
  return found->second;
}

Expected<void> neuroshard::writeTensorFile(const TensorFile &file,
                                           const std::string &path) {
  Expected<std::string> bytes = serialize(file, path);
  if (!bytes)
    return tl::unexpected(bytes.error());
  return writeFile(path, *bytes);
}

#define NEUROSHARD_INSTANTIATE(T)                                              \
  template Tensor neuroshard::makeTensor<T>(std::span<const T>,                \
                                            std::vector<int64_t>);             \
  template Expected<std::vector<T>> TensorFile::get<T>(                        \
      const std::string &, const std::vector<int64_t> &) const;
NEUROSHARD_INSTANTIATE(uint8_t)
NEUROSHARD_INSTANTIATE(int32_t)
NEUROSHARD_INSTANTIATE(int64_t)
NEUROSHARD_INSTANTIATE(float)
NEUROSHARD_INSTANTIATE(double)
#undef NEUROSHARD_INSTANTIATE
