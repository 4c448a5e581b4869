//===- WireType.h - Types of values between devices -------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_WIRETYPE_H
#define NEUROSHARD_MODEL_WIRETYPE_H

#include "neuroshard/Model/Types.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

/// How a row of values, one bag's or id's columns of one shard, lies in a
/// message. Rows of Int8 and Fp8 (e4m3, the f8E4M3FN of MLIR) begin with a
/// scale in f32, of which the values are multiples. Tables are not stored so.
enum class WireFormat { F32, F16, BF16, Int8, Fp8 };
inline constexpr WireFormat kWireFormats[] = {
    WireFormat::F32, WireFormat::F16, WireFormat::BF16, WireFormat::Int8,
    WireFormat::Fp8};

/// That of values as results have them.
constexpr WireFormat formatOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return WireFormat::F16;
  case ElementType::BF16:
    return WireFormat::BF16;
  default:
    return WireFormat::F32;
  }
}

/// Whether rows have a scale.
constexpr bool isScaled(WireFormat format) {
  return format == WireFormat::Int8 || format == WireFormat::Fp8;
}
/// Bytes of a value.
constexpr int64_t valueBytes(WireFormat format) {
  return format == WireFormat::F32 ? 4 : isScaled(format) ? 1 : 2;
}
/// Bytes of the scale of a row.
constexpr int64_t scaleBytes(WireFormat format) {
  return isScaled(format) ? 4 : 0;
}
/// Values that have the room of a scale.
constexpr int64_t scaleWidth(WireFormat format) {
  return scaleBytes(format) / valueBytes(format);
}
/// Bytes of a row of `width` values with its scale.
constexpr int64_t rowBytes(WireFormat format, int64_t width) {
  return width * valueBytes(format) + scaleBytes(format);
}

/// Formats in which results and their gradients travel between devices.
/// Written as one, "bf16", if they are the same, else as "f32/bf16": that of
/// results, then that of gradients.
struct WireType {
  WireFormat results;
  WireFormat gradients;

  /// One format for both.
  constexpr WireType(WireFormat both = WireFormat::F32)
      : results(both), gradients(both) {}
  constexpr WireType(WireFormat results, WireFormat gradients)
      : results(results), gradients(gradients) {}

  bool operator==(const WireType &) const = default;
};

/// Bytes of the copy in which a row of values of `from` travels; 0 if it needs
/// none.
constexpr int64_t castRowBytes(ElementType from, WireFormat wire,
                               int64_t width) {
  return wire == formatOf(from) ? 0 : rowBytes(wire, width);
}

/// "f32", "f16", "bf16", "int8", "fp8".
std::string_view toString(WireFormat format);
std::optional<WireFormat> parseWireFormat(std::string_view text);

std::string toString(WireType type);
/// Nothing for a text of another form, such as "bf16/bf16".
std::optional<WireType> parseWireType(std::string_view text);
/// All there are; those with one format for both first.
std::span<const WireType> allWireTypes();

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_WIRETYPE_H
