//===- Safetensors.cpp - Reads and writes named tensors in one file -------===//

#include "neuroshard/CostModel/Safetensors.h"

#include "neuroshard/Planner/Json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

using namespace neuroshard;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "tensors are kept little-endian and copied as they are");

namespace {

constexpr size_t kLengthBytes = 8;
/// The header's length is a multiple of this, so that the data is aligned.
constexpr size_t kAlignment = 8;
/// More than any header of ours, and what the format's own reader allows.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct TypeInfo {
  TensorType type;
  std::string_view name;
  size_t bytes;
};

constexpr std::array<TypeInfo, 5> kTypes = {{{TensorType::U8, "U8", 1},
                                             {TensorType::I32, "I32", 4},
                                             {TensorType::I64, "I64", 8},
                                             {TensorType::F32, "F32", 4},
                                             {TensorType::F64, "F64", 8}}};

const TypeInfo &infoOf(TensorType type) {
  return kTypes[static_cast<size_t>(type)];
}

template <typename T> constexpr TensorType typeOf() {
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

/// "F32 [2, 3]"; an extent of -1 is written as "any".
std::string describe(TensorType type, const std::vector<int64_t> &shape) {
  std::string text(infoOf(type).name);
  text += " [";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += i ? ", " : "";
    text += shape[i] < 0 ? "any" : std::to_string(shape[i]);
  }
  return text + "]";
}

/// Bytes of a tensor, or nothing if the count does not fit.
std::optional<uint64_t> byteCount(TensorType type,
                                  const std::vector<int64_t> &shape) {
  uint64_t bytes = infoOf(type).bytes;
  for (int64_t extent : shape) {
    uint64_t factor = static_cast<uint64_t>(extent);
    if (factor && bytes > std::numeric_limits<uint64_t>::max() / factor)
      return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

/// Where a tensor's bytes lie in the data part.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;
};

/// Takes one file apart. Every error names the file.
class Reader {
public:
  Reader(const std::string &path, std::string_view bytes)
      : path(path), bytes(bytes) {}

  Expected<TensorFile> read();

private:
  Expected<json> readHeader();
  Expected<void> readMetadata(const json &entry);
  Expected<void> readTensor(const std::string &name, const json &entry);
  Expected<TensorType> readType(const std::string &name, const json &entry);
  Expected<std::vector<int64_t>> readShape(const std::string &name,
                                           const json &entry);
  Expected<Range> readRange(const std::string &name, const json &entry);
  Expected<void> checkRanges();

  tl::unexpected<Diagnostics> fail(std::string message) const {
    return failure(path, "not a sound safetensors file: " + message);
  }
  tl::unexpected<Diagnostics> failTensor(const std::string &name,
                                         std::string message) const {
    return fail("tensor '" + name + "': " + message);
  }

  const std::string &path;
  std::string_view bytes;
  std::string_view data;
  TensorFile file;
  std::vector<Range> ranges;
};

Expected<json> Reader::readHeader() {
  if (bytes.size() < kLengthBytes)
    return fail("it has " + std::to_string(bytes.size()) +
                " bytes, expected at least 8");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeaderBytes)
    return fail("a header of " + std::to_string(length) +
                " bytes, expected at most " + std::to_string(kMaxHeaderBytes));
  if (length > bytes.size() - kLengthBytes)
    return fail("it is truncated: a header of " + std::to_string(length) +
                " bytes, but only " +
                std::to_string(bytes.size() - kLengthBytes) + " follow");
  json header = json::parse(bytes.substr(kLengthBytes, length), nullptr, false);
  if (!header.is_object())
    return fail("the header is not a JSON object");
  data = bytes.substr(kLengthBytes + length);
  return header;
}

Expected<void> Reader::readMetadata(const json &entry) {
  if (!entry.is_object())
    return fail("'__metadata__' is not an object of strings");
  for (const auto &[key, value] : entry.items()) {
    if (!value.is_string())
      return fail("metadata '" + key + "' is not a string");
    file.metadata[key] = value.get<std::string>();
  }
  return {};
}

Expected<TensorType> Reader::readType(const std::string &name,
                                      const json &entry) {
  auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string())
    return failTensor(name, "'dtype' is missing or not a string");
  for (const TypeInfo &info : kTypes)
    if (*found == info.name)
      return info.type;
  return failTensor(name, "type '" + found->get<std::string>() +
                              "', expected U8, I32, I64, F32 or F64");
}

Expected<std::vector<int64_t>> Reader::readShape(const std::string &name,
                                                 const json &entry) {
  auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array())
    return failTensor(name, "'shape' is missing or not a list");
  std::vector<int64_t> shape;
  for (const json &extent : *found) {
    if (!extent.is_number_unsigned() ||
        extent.get<uint64_t>() >
            static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return failTensor(name, "an extent is not a count: " + extent.dump());
    shape.push_back(extent.get<int64_t>());
  }
  return shape;
}

Expected<Range> Reader::readRange(const std::string &name, const json &entry) {
  auto found = entry.find("data_offsets");
  if (found == entry.end() || !found->is_array() || found->size() != 2 ||
      !(*found)[0].is_number_unsigned() || !(*found)[1].is_number_unsigned())
    return failTensor(name, "'data_offsets' is not a pair of counts");
  Range range{(*found)[0].get<uint64_t>(), (*found)[1].get<uint64_t>(), name};
  if (range.begin > range.end)
    return failTensor(name, "its bytes end before they begin");
  if (range.end > data.size())
    return failTensor(name, "its bytes end at " + std::to_string(range.end) +
                                ", but the file holds " +
                                std::to_string(data.size()) +
                                " of data; is it truncated?");
  return range;
}

Expected<void> Reader::readTensor(const std::string &name, const json &entry) {
  if (!entry.is_object())
    return failTensor(name, "its entry is not an object");
  Expected<TensorType> type = readType(name, entry);
  if (!type)
    return tl::unexpected(type.error());
  Expected<std::vector<int64_t>> shape = readShape(name, entry);
  if (!shape)
    return tl::unexpected(shape.error());
  Expected<Range> range = readRange(name, entry);
  if (!range)
    return tl::unexpected(range.error());
  std::optional<uint64_t> expected = byteCount(*type, *shape);
  uint64_t found = range->end - range->begin;
  if (!expected || *expected != found)
    return failTensor(name, describe(*type, *shape) + " does not fit its " +
                                std::to_string(found) + " bytes");
  Tensor tensor{*type, std::move(*shape), std::vector<std::byte>(found)};
  if (found)
    std::memcpy(tensor.bytes.data(), data.data() + range->begin, found);
  file.tensors.emplace(name, std::move(tensor));
  if (found)
    ranges.push_back(std::move(*range));
  return {};
}

/// The format allows neither shared bytes nor bytes that no tensor owns.
Expected<void> Reader::checkRanges() {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  uint64_t end = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].begin < end)
      return fail("tensors '" + ranges[i - 1].name + "' and '" +
                  ranges[i].name + "' overlap");
    if (ranges[i].begin > end)
      return failTensor(ranges[i].name,
                        std::to_string(ranges[i].begin - end) +
                            " bytes before it belong to no tensor");
    end = ranges[i].end;
  }
  if (end != data.size())
    return fail(std::to_string(data.size() - end) +
                " bytes at its end belong to no tensor");
  return {};
}

Expected<TensorFile> Reader::read() {
  Expected<json> header = readHeader();
  if (!header)
    return tl::unexpected(header.error());
  for (const auto &[name, entry] : header->items()) {
    Expected<void> done =
        name == "__metadata__" ? readMetadata(entry) : readTensor(name, entry);
    if (!done)
      return tl::unexpected(done.error());
  }
  if (Expected<void> sound = checkRanges(); !sound)
    return tl::unexpected(sound.error());
  return std::move(file);
}

/// Tensors by falling element size, so that each is aligned; then by name.
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

Expected<std::string> serialize(const TensorFile &file,
                                const std::string &path) {
  json header = json::object();
  if (!file.metadata.empty())
    header["__metadata__"] = file.metadata;
  uint64_t offset = 0;
  auto order = writingOrder(file);
  for (auto it : order) {
    const auto &[name, tensor] = *it;
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

int64_t Tensor::elementCount() const {
  return static_cast<int64_t>(bytes.size() / infoOf(type).bytes);
}

template <typename T>
Tensor neuroshard::makeTensor(std::span<const T> values,
                              std::vector<int64_t> shape) {
  if (shape.empty())
    shape = {static_cast<int64_t>(values.size())};
  Tensor tensor{typeOf<T>(), std::move(shape),
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
  std::string wanted = "expected " + describe(typeOf<T>(), shape);
  if (found == tensors.end())
    return failure(name, "no such tensor, " + wanted);
  const Tensor &tensor = found->second;
  if (tensor.type != typeOf<T>() || !matches(tensor.shape, shape))
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

Expected<TensorFile> neuroshard::readTensorFile(const std::string &path) {
  Expected<std::string> bytes = readFile(path);
  if (!bytes)
    return tl::unexpected(bytes.error());
  return Reader(path, *bytes).read();
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
