//===- Types.h - Types of elements and ids, and poolings --------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_TYPES_H
#define NEUROSHARD_MODEL_TYPES_H

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace neuroshard {

enum class ElementType { F32, F16, BF16 };
inline constexpr ElementType kElementTypes[] = {
    ElementType::F32, ElementType::F16, ElementType::BF16};
enum class IdType { I32, I64 };
enum class Pooling { Sum, Mean, None };

constexpr int64_t elementBytes(ElementType type) {
  return type == ElementType::F32 ? 4 : 2;
}
constexpr int64_t idBytes(IdType type) { return type == IdType::I32 ? 4 : 8; }

/// The type in which ids are packed for `devices` devices, and their kernels
/// read them: the narrower one if it numbers the rows of the tables. A single
/// device keeps the input's type, as it may read ids in place.
constexpr IdType packedIdType(IdType input, int64_t mostRows, int64_t devices) {
  bool isNarrow = mostRows <= std::numeric_limits<int32_t>::max();
  return devices > 1 && isNarrow ? IdType::I32 : input;
}

/// "f32", "f16", "bf16".
std::string_view toString(ElementType type);
/// "i32", "i64".
std::string_view toString(IdType type);
/// "sum", "mean", "none".
std::string_view toString(Pooling pooling);
std::optional<ElementType> parseElementType(std::string_view text);
std::optional<IdType> parseIdType(std::string_view text);
std::optional<Pooling> parsePooling(std::string_view text);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_TYPES_H
