//===- BufferPoolTest.cpp - Buffers of steps ------------------------------===//
//
// Shows that memory is reused, but not by two buffers at a time.
//
//===----------------------------------------------------------------------===//

#include "Memory/BufferPool.h"

#include <gtest/gtest.h>

using namespace neuroshard::runtime;

namespace {

TEST(BufferPool, HandsOutAgainWhatCameBack) {
  auto pool = std::make_shared<BufferPool>();
  std::byte *first = pool->acquire(100000).get();
  int64_t held = pool->heldBytes();
  for (int step = 0; step < 10; ++step) {
    Buffer buffer = pool->acquire(100000 + step * 100);
    EXPECT_EQ(buffer.get(), first);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.get()) % 64, 0u);
  }
  EXPECT_EQ(pool->heldBytes(), held);
  Buffer a = pool->acquire(100000), b = pool->acquire(100000);
  EXPECT_NE(a.get(), b.get());
}

} // namespace
