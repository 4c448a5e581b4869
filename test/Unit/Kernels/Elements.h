//===- Elements.h - Stored elements, converted by LLVM's APFloat *- C++ -*-===//
//
// An oracle for conversions that shares nothing with the generated code.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_KERNELS_ELEMENTS_H
#define NEUROSHARD_TEST_KERNELS_ELEMENTS_H

#include "GuardedArray.h"

#include "neuroshard/Conversion/Kernels/KernelSpec.h"

#include <cstdint>
#include <random>
#include <vector>

namespace neuroshard {

/// The f32 value of a stored f16 or bf16 element.
float fromBits(ElementType element, uint16_t bits);
/// Rounds to nearest even.
uint16_t toBits(ElementType element, float value);
/// An f32 rounded to the element type and back.
float roundTo(ElementType element, float value);

uint32_t bitsOf(float value);

/// Values for tests: of many magnitudes with negative zero and denormals
/// among them, or small integers, whose sums and products are exact.
enum class Data { Messy, Integers };
std::vector<float> makeValues(size_t count, Data data, uint32_t seed);

/// Rows of a shard in their stored form: padded to 16 bytes. The padding
/// holds a value that must not change.
class StoredRows {
public:
  StoredRows(ElementType element, int64_t dim, const std::vector<float> &rows);

  void *data();
  float get(int64_t row, int64_t column);
  /// True if every padding element still has its value.
  bool isPaddingIntact();

private:
  ElementType element;
  int64_t dim, stride, numRows;
  GuardedArray<uint32_t> wide;   // f32
  GuardedArray<uint16_t> narrow; // f16, bf16
};

} // namespace neuroshard

#endif // NEUROSHARD_TEST_KERNELS_ELEMENTS_H
