//===- Types.h - Types of elements and ids, and poolings --------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_TYPES_H
#define NEUROSHARD_MODEL_TYPES_H

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace neuroshard {

/// Types of values, and of the elements of tables. The last three are those of
/// tables that are served, not trained, in FBGEMM's formats: int8 and int4 have
/// an f16 scale and an f16 bias in front of each row, and a value is
/// scale x element + bias with elements from 0 to 255 or 15, of int4 the first
/// of two in the low half of a byte; fp8 has a sign, 4 bits of exponent with
/// bias 7 and 3 of mantissa, without infinities and NaN.
enum class ElementType { F32, F16, BF16, Int8, Int4, Fp8 };
enum class IdType { I32, I64 };
enum class Pooling { Sum, Mean, None };

/// Whether tables of this type are served alone, and results never have it.
constexpr bool isQuantized(ElementType type) {
  return type >= ElementType::Int8;
}

/// The type of a table's values once they are read.
constexpr ElementType valueType(ElementType type) {
  return isQuantized(type) ? ElementType::F32 : type;
}

/// The first ones, of results and of tables that are trained.
inline constexpr ElementType kFloatTypes[] = {
    ElementType::F32, ElementType::F16, ElementType::BF16};

/// Of one of kFloatTypes.
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

/// "f32", "f16", "bf16", "int8", "int4", "fp8".
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
