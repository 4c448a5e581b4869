//===- ThreadPoolTest.cpp - The threads of one device ---------------------===//
//
// Shows that the pool calls every index once, passes exceptions on, and keeps
// workers off the core of their caller.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/ThreadPool.h"

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>
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

#ifdef __linux__
cpu_set_t coresOfThread() {
  cpu_set_t cores;
  sched_getaffinity(0, sizeof(cores), &cores);
  return cores;
}

/// A worker may run on all cores of the caller's but one; the caller on all.
TEST(ThreadPool, WorkersKeepOffTheCoreOfTheCaller) {
  cpu_set_t own = coresOfThread();
  if (CPU_COUNT(&own) < 2)
    GTEST_SKIP() << "one core";
  ThreadPool pool(2);
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> hasWorked = false;
  // The caller waits in its index until the worker has taken the other.
  pool.parallelFor(2, [&](int64_t) {
    if (std::this_thread::get_id() == caller) {
      while (!hasWorked)
        std::this_thread::yield();
      return;
    }
    cpu_set_t left = coresOfThread(), both;
    CPU_AND(&both, &left, &own);
    EXPECT_TRUE(CPU_EQUAL(&both, &left));
    EXPECT_EQ(CPU_COUNT(&left), CPU_COUNT(&own) - 1);
    hasWorked = true;
  });
  cpu_set_t after = coresOfThread();
  EXPECT_TRUE(CPU_EQUAL(&after, &own));
}
#endif

} // namespace
