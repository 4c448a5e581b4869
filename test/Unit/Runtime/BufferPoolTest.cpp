//===- BufferPoolTest.cpp - Buffers of steps ------------------------------===//
//
// Shows that memory is reused, but not by two buffers at a time.
//
//===----------------------------------------------------------------------===//

#include "Host/BufferPool.h"

#include <gtest/gtest.h>

using namespace neuroshard::runtime;

namespace {

TEST(BufferPool, HandsOutAgainWhatCameBack) {
  auto pool = std::make_shared<BufferPool>();
  std::byte *first = pool->acquire(neuroshard::BufferKind::Sort, 100000).get();
  int64_t held = pool->heldBytes();
  for (int step = 0; step < 10; ++step) {
    Buffer buffer =
        pool->acquire(neuroshard::BufferKind::Sort, 100000 + step * 100);
    EXPECT_EQ(buffer.get(), first);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.get()) % 64, 0u);
  }
  EXPECT_EQ(pool->heldBytes(), held);
  Buffer a = pool->acquire(neuroshard::BufferKind::Sort, 100000),
         b = pool->acquire(neuroshard::BufferKind::Sort, 100000);
  EXPECT_NE(a.get(), b.get());
}

TEST(BufferPool, CountsWhatItIsAskedFor) {
  auto pool = std::make_shared<BufferPool>();
  pool->acquire(neuroshard::BufferKind::Sort, 100);
  pool->acquireArray<float>(neuroshard::BufferKind::Norms, 3);
  pool->acquire(neuroshard::BufferKind::Sort, 0);
  neuroshard::BufferBytes expected;
  expected[neuroshard::BufferKind::Sort] = 100;
  expected[neuroshard::BufferKind::Norms] = 12;
  EXPECT_EQ(pool->askedBytes(), expected);
}

} // namespace
