//===- WireType.h - Types of values between devices -------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_WIRETYPE_H
#define NEUROSHARD_MODEL_WIRETYPE_H

#include "neuroshard/Model/Types.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

/// Types in which results and their gradients travel between devices. Written
/// as one type, "bf16", if they are the same, else as "f32/bf16": that of
/// results, then that of gradients.
struct WireType {
  ElementType results;
  ElementType gradients;

  /// One type for both.
  constexpr WireType(ElementType both = ElementType::F32)
      : results(both), gradients(both) {}
  constexpr WireType(ElementType results, ElementType gradients)
      : results(results), gradients(gradients) {}

  bool operator==(const WireType &) const = default;
};

/// Bytes of the copy in which a value of `from` travels; 0 if it needs none.
constexpr int64_t castBytes(ElementType from, ElementType wire) {
  return wire == from ? 0 : elementBytes(wire);
}

std::string toString(WireType type);
/// Nothing for a text of another form, such as "bf16/bf16".
std::optional<WireType> parseWireType(std::string_view text);
/// All there are; those with one type for both first.
std::span<const WireType> allWireTypes();

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_WIRETYPE_H
