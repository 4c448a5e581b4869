//===- ThreadPoolTest.cpp - The threads of one device ---------------------===//
//
// Shows that the pool calls every index once and passes exceptions on.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/ThreadPool.h"

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

using namespace neuroshard::runtime;

namespace {

TEST(ThreadPool, CallsEveryIndexOnce) {
  for (int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.numThreads(), threads);
    for (int64_t count : {0, 1, 2, 5, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(count) + 1);
      pool.parallelFor(count,
                       [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(calls[static_cast<size_t>(i)], 1);
      EXPECT_EQ(calls[static_cast<size_t>(count)], 0);
    }
  }
}

TEST(ThreadPool, NestedCallsRun) {
  ThreadPool pool(3);
  std::atomic<int> calls = 0;
  pool.parallelFor(
      10, [&](int64_t) { pool.parallelFor(10, [&](int64_t) { ++calls; }); });
  EXPECT_EQ(calls, 100);
}

TEST(ThreadPool, RethrowsAndGoesOn) {
  ThreadPool pool(3);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(pool.parallelFor(50,
                                  [&](int64_t i) {
                                    if (i == 17)
                                      throw std::runtime_error("17");
                                  }),
                 std::runtime_error);
    std::atomic<int> calls = 0;
    pool.parallelFor(50, [&](int64_t) { ++calls; });
    EXPECT_EQ(calls, 50);
  }
}

} // namespace
