//===- StreamingTest.cpp - Streamed rows are the rows themselves ----------===//

#include "Host/StreamingCopy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

using namespace neuroshard::runtime;

namespace {

constexpr int64_t kWidth = 24, kStride = 32;
constexpr float kUntouched = 1234.5f;

/// Floats that begin where vectors do.
class AlignedFloats {
public:
  explicit AlignedFloats(size_t count)
      : memory(static_cast<float *>(
            std::aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64))) {
    std::fill_n(memory.get(), count, kUntouched);
  }
  float *data() { return memory.get(); }
  float operator[](int64_t i) const { return memory.get()[i]; }

private:
  struct Free {
    void operator()(float *p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> memory;
};

std::vector<float> makeRows(int64_t rows, int64_t stride) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * stride; ++i)
    values.push_back(static_cast<float>(i) * 0.25f - 40);
  return values;
}

TEST(Streaming, OnlyRowsOfWholeVectors) {
  AlignedFloats out(64);
  EXPECT_FALSE(canStream(out.data() + 1, kWidth, kStride));
  EXPECT_FALSE(canStream(out.data(), 12, kStride));
  EXPECT_FALSE(canStream(out.data(), kWidth, 28));
#ifdef __x86_64__
  EXPECT_TRUE(canStream(out.data(), kWidth, kStride));
#endif
}

TEST(Streaming, RowsGoWhereTheyBelongAndNowhereElse) {
  AlignedFloats out(5 * kStride);
  if (!canStream(out.data(), kWidth, kStride))
    GTEST_SKIP() << "nothing is streamed on this processor";
  std::vector<float> rows = makeRows(4, kWidth);
  streamRows(rows.data(), 4, kWidth, out.data(), kStride);
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t c = 0; c < kStride; ++c)
      EXPECT_EQ(out[row * kStride + c],
                row < 4 && c < kWidth ? rows[row * kWidth + c] : kUntouched);
}

/// More rows than are fetched ahead, of `width` floats, `stride` apart from
/// `to` on.
template <typename Id>
void checkSingleRows(int64_t width, int64_t stride, int64_t to) {
  constexpr int64_t kIds = 101, kRows = 9;
  AlignedFloats out(static_cast<size_t>(to + kIds * stride));
  float *first = out.data() + to;
  if (!canStream(first, width, stride))
    GTEST_SKIP() << "nothing is streamed on this processor";
  std::vector<float> weights = makeRows(kRows, width + 4);
  weights[0] = -0.0f; // the sum of a bag begins with +0
  std::vector<Id> ids(kIds);
  for (int64_t i = 0; i < kIds; ++i)
    ids[i] = Id((i * 5 + 4) % kRows); // 4, 0, ...
  SingleRows rows{weights.data(), width + 4, ids.data(), sizeof(Id)};
  streamSingleRows(rows, 1, kIds - 1, width, first, stride);
  EXPECT_FALSE(std::signbit(first[0]));
  for (int64_t i = 0; i < kIds; ++i)
    for (int64_t c = 0; c < stride; ++c) {
      bool isWritten = i < kIds - 2 && c < width;
      ASSERT_EQ(first[i * stride + c],
                isWritten ? weights[ids[i + 1] * (width + 4) + c] : kUntouched)
          << "row " << i << ", column " << c;
    }
}

template <typename Id> void checkAllSingleRows() {
  checkSingleRows<Id>(kWidth, kStride, 0); // not of whole lines
  checkSingleRows<Id>(32, 48, 0);          // of whole lines
  checkSingleRows<Id>(32, 32, 8);          // that begin within a line
}

TEST(Streaming, SingleRowsOfNarrowIds) { checkAllSingleRows<int32_t>(); }
TEST(Streaming, SingleRowsOfWideIds) { checkAllSingleRows<int64_t>(); }

} // namespace
