//===- StreamingTest.cpp - Streamed rows are the rows themselves ----------===//

#include "Streaming.h"

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
      : memory(static_cast<float *>(std::aligned_alloc(64, count * 4))) {
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

template <typename Id> void checkSingleRows() {
  AlignedFloats out(4 * kStride);
  if (!canStream(out.data(), kWidth, kStride))
    GTEST_SKIP() << "nothing is streamed on this processor";
  std::vector<float> weights = makeRows(9, kWidth + 4);
  weights[0] = -0.0f; // the sum of a bag begins with +0
  std::vector<Id> ids = {7, 7, 0, 8, 3, 1};
  SingleRows rows{weights.data(), kWidth + 4, ids.data(), sizeof(Id),
                  int64_t(ids.size())};
  streamSingleRows(rows, 1, 5, kWidth, out.data(), kStride);
  for (int64_t i = 1; i < 5; ++i)
    for (int64_t c = 0; c < kWidth; ++c)
      EXPECT_EQ(out[(i - 1) * kStride + c], weights[ids[i] * (kWidth + 4) + c]);
  EXPECT_FALSE(std::signbit(out[kStride]));
}

TEST(Streaming, SingleRowsOfNarrowIds) { checkSingleRows<int32_t>(); }
TEST(Streaming, SingleRowsOfWideIds) { checkSingleRows<int64_t>(); }

} // namespace
