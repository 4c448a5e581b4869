//===- SafetensorsReader.cpp - Reads safetensors files --------------------===//

#include "SafetensorsTypes.h"

#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/InputLimits.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

using namespace neuroshard;
using namespace neuroshard::safetensors;
using nlohmann::json;

namespace {

/// The limit of the format's reference reader.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

/// Where a tensor's bytes lie in the data part.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;
};

std::string tooDeep(const std::string &what) {
  return what + " has lists and objects more than " +
         std::to_string(kMaxJsonNesting) + " deep inside each other";
}

/// Reads the header of a file. Errors name the file.
class HeaderReader {
public:
  HeaderReader(const std::string &path, std::string_view bytes)
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

Expected<json> HeaderReader::readHeader() {
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
  std::string_view text = bytes.substr(kLengthBytes, length);
  if (isNestedTooDeep(text))
    return fail(tooDeep("the header"));
  json header = json::parse(text, nullptr, false);
  if (!header.is_object())
    return fail("the header is not a JSON object");
  data = bytes.substr(kLengthBytes + length);
  return header;
}

Expected<void> HeaderReader::readMetadata(const json &entry) {
  if (!entry.is_object())
    return fail("'__metadata__' is not an object of strings");
  for (const auto &[key, value] : entry.items()) {
    if (!value.is_string())
      return fail("metadata '" + key + "' is not a string");
    // Some are JSON, for those who know the file.
    file.metadata[key] = value.get<std::string>();
    if (isNestedTooDeep(file.metadata[key]))
      return fail(tooDeep("metadata '" + key + "'"));
  }
  return {};
}

Expected<TensorType> HeaderReader::readType(const std::string &name,
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

Expected<std::vector<int64_t>> HeaderReader::readShape(const std::string &name,
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

Expected<Range> HeaderReader::readRange(const std::string &name,
                                        const json &entry) {
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

Expected<void> HeaderReader::readTensor(const std::string &name,
                                        const json &entry) {
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
Expected<void> HeaderReader::checkRanges() {
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

Expected<TensorFile> HeaderReader::read() {
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

} // namespace

Expected<TensorFile> neuroshard::readTensorFile(const std::string &path) {
  Expected<std::string> bytes = readFile(path);
  if (!bytes)
    return tl::unexpected(bytes.error());
  return parseTensorFile(*bytes, path);
}

Expected<TensorFile> neuroshard::parseTensorFile(std::string_view bytes,
                                                 const std::string &path) {
  return HeaderReader(path, bytes).read();
}
