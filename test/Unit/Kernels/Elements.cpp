//===- Elements.cpp - Stored elements, converted by LLVM's APFloat --------===//
//
// See Elements.h.
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

#include "neuroshard/Runtime/KernelABI.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

namespace neuroshard {

static constexpr uint32_t kPaddingBits = 0x5a5a5a5a;

static const llvm::fltSemantics &getSemantics(ElementType element) {
  return element == ElementType::F16 ? llvm::APFloat::IEEEhalf()
                                     : llvm::APFloat::BFloat();
}

uint32_t bitsOf(float value) { return llvm::bit_cast<uint32_t>(value); }

float fromBits(ElementType element, uint16_t bits) {
  llvm::APFloat value(getSemantics(element), llvm::APInt(16, bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToFloat();
}

uint16_t toBits(ElementType element, float value) {
  llvm::APFloat narrow(value);
  bool losesInfo;
  narrow.convert(getSemantics(element), llvm::APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return narrow.bitcastToAPInt().getZExtValue();
}

float roundTo(ElementType element, float value) {
  if (element == ElementType::F32)
    return value;
  return fromBits(element, toBits(element, value));
}

std::vector<float> makeValues(size_t count, Data data, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float &value : values) {
    if (data == Data::Integers) {
      value = static_cast<int>(generator() % 9) - 4;
      continue;
    }
    float mantissa = (generator() % 65536 + 1) / 65536.0f;
    int exponent = static_cast<int>(generator() % 13) - 9;
    value = std::ldexp(generator() % 2 ? mantissa : -mantissa, exponent);
    if (generator() % 64 == 0)
      value = -0.0f;
    if (generator() % 64 == 0)
      value = std::ldexp(mantissa, -130);
  }
  return values;
}

static std::vector<uint32_t> pad(int64_t dim, int64_t stride,
                                 const std::vector<float> &rows,
                                 ElementType element) {
  int64_t numRows = rows.size() / dim;
  std::vector<uint32_t> stored(numRows * stride, kPaddingBits);
  for (int64_t row = 0; row < numRows; ++row)
    for (int64_t column = 0; column < dim; ++column) {
      float value = rows[row * dim + column];
      stored[row * stride + column] =
          element == ElementType::F32 ? bitsOf(value) : toBits(element, value);
    }
  return stored;
}

StoredRows::StoredRows(ElementType element, int64_t dim,
                       const std::vector<float> &rows)
    : element(element), dim(dim),
      stride(nsrt_row_stride(dim, elementBytes(element))),
      numRows(rows.size() / dim), wide(pad(dim, stride, rows, element)),
      narrow([&] {
        std::vector<uint32_t> bits = pad(dim, stride, rows, element);
        return std::vector<uint16_t>(bits.begin(), bits.end());
      }()) {}

void *StoredRows::data() {
  if (element == ElementType::F32)
    return wide.data();
  return narrow.data();
}

float StoredRows::get(int64_t row, int64_t column) {
  int64_t position = row * stride + column;
  if (element == ElementType::F32)
    return llvm::bit_cast<float>(wide[position]);
  return fromBits(element, narrow[position]);
}

bool StoredRows::isPaddingIntact() {
  for (int64_t row = 0; row < numRows; ++row)
    for (int64_t column = dim; column < stride; ++column) {
      int64_t position = row * stride + column;
      if (wide[position] != kPaddingBits ||
          narrow[position] != static_cast<uint16_t>(kPaddingBits))
        return false;
    }
  return true;
}

} // namespace neuroshard
