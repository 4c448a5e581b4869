//===- BufferPoolTest.cpp - Buffers of steps ------------------------------===//
//
// Shows that memory is reused, but not by two buffers at a time, and that the
// address sanitizer knows what of it is in use.
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

TEST(BufferPool, GivesBackWhatIsNotAskedForAgain) {
  auto pool = std::make_shared<BufferPool>();
  pool->take(100 << 20);
  pool->take(8000);
  int64_t both = pool->heldBytes();
  EXPECT_GT(both, 100 << 20);
  for (int64_t i = 0; i < 2 * BufferPool::kKeptRequests; ++i)
    pool->take(8000);
  EXPECT_LT(pool->heldBytes(), 20000);
  EXPECT_GE(pool->heldBytes(), 8000);
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

#if defined(__SANITIZE_ADDRESS__)
TEST(BufferPoolDeathTest, OnlyWhatWasAskedForIsInUse) {
  auto pool = std::make_shared<BufferPool>();
  Buffer buffer = pool->acquire(neuroshard::BufferKind::Sort, 5000);
  volatile std::byte *memory = buffer.get();
  memory[4999] = std::byte(1);
  EXPECT_DEATH(memory[5000] = std::byte(1), "use-after-poison");
  buffer.reset();
  EXPECT_DEATH(memory[0] = std::byte(1), "use-after-poison");
  // A longer one takes the same block.
  buffer = pool->acquire(neuroshard::BufferKind::Sort, 5001);
  ASSERT_EQ(buffer.get(), memory);
  memory[5000] = std::byte(1);
}
#endif

} // namespace
