//===- SafetensorsTypes.h - Element types and sizes of tensors --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_SAFETENSORSTYPES_H
#define NEUROSHARD_LIB_COSTMODEL_SAFETENSORSTYPES_H

#include "neuroshard/CostModel/Safetensors.h"

#include <array>
#include <optional>
#include <string_view>

namespace neuroshard::safetensors {

inline constexpr size_t kLengthBytes = 8;

/// An element type as files write it.
struct TypeInfo {
  TensorType type;
  std::string_view name;
  size_t bytes;
};

inline constexpr std::array<TypeInfo, 5> kTypes = {
    {{TensorType::U8, "U8", 1},
     {TensorType::I32, "I32", 4},
     {TensorType::I64, "I64", 8},
     {TensorType::F32, "F32", 4},
     {TensorType::F64, "F64", 8}}};

inline const TypeInfo &infoOf(TensorType type) {
  return kTypes[static_cast<size_t>(type)];
}

/// "F32 [2, 3]"; an extent of -1 is written as "any".
std::string describe(TensorType type, const std::vector<int64_t> &shape);

/// Bytes of a tensor, or nothing if the count does not fit.
std::optional<uint64_t> byteCount(TensorType type,
                                  const std::vector<int64_t> &shape);

} // namespace neuroshard::safetensors

#endif // NEUROSHARD_LIB_COSTMODEL_SAFETENSORSTYPES_H
