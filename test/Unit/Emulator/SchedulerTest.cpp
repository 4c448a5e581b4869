//===- SchedulerTest.cpp - Threads, barriers and deadlocks ----------------===//
//
// Shows that every thread of every block runs once, that barriers hold, that
// the order of threads depends on the seed alone, and that a thread which waits
// for another in vain is named instead of hanging the process.
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard::emulator;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

namespace {

std::string getMessage(const std::optional<KernelError> &error) {
  return error ? error->message : "no error";
}

void countThread(std::vector<int> &counts) {
  int64_t index = nse_block_id() * nse_block_dim() + nse_thread_id();
  if (nse_grid_dim() * nse_block_dim() == static_cast<int64_t>(counts.size()))
    ++counts[static_cast<size_t>(index)];
}

TEST(Scheduler, RunsEveryThreadOfEveryBlockOnce) {
  for (Shape shape : {Shape{1, 1}, {1, 256}, {7, 32}, {100, 33}, {37, 1024}}) {
    std::vector<int> counts(shape.grid * shape.block);
    EXPECT_FALSE((launchTest<countThread>(shape, counts)));
    EXPECT_THAT(counts, Each(1));
  }
}

TEST(Scheduler, OutsideAKernelThereIsOneThread) {
  EXPECT_EQ(nse_thread_id(), 0);
  EXPECT_EQ(nse_block_id(), 0);
  EXPECT_EQ(nse_block_dim(), 1);
  EXPECT_EQ(nse_grid_dim(), 1);
  nse_barrier();
  nse_warp_sync(1);
  EXPECT_EQ(static_cast<uint32_t>(nse_shuffle(1, 42, 1, 31, NSE_SHUFFLE_BFLY)),
            42u);
  EXPECT_EQ(nse_ballot(1, 5), 1u);
}

void runForEver(bool &meets) {
  for (int64_t i = 0;; ++i)
    if (meets)
      nse_warp_sync(1u << nse_thread_id());
    else
      nse_access(&i, 8, NSE_READ);
}

TEST(Scheduler, ABlockThatRunsForEverIsStopped) {
  for (bool meets : {false, true}) {
    std::optional<KernelError> error =
        launchTest<runForEver>({1, 4, 0, false, 100000}, meets);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind, ErrorKind::Endless);
    EXPECT_THAT(error->message,
                HasSubstr("takes the last of 100000 steps of its block"));
  }
}

struct Exchange {
  std::vector<int64_t> values, results;
};

/// Each thread reads what another warp has written.
void exchange(Exchange &data) {
  auto thread = static_cast<size_t>(nse_thread_id()),
       threads = data.values.size();
  for (int round = 0; round < 3; ++round) {
    data.values[thread] = static_cast<int64_t>(thread) + round;
    nse_barrier();
    data.results[thread] += data.values[(thread + 100) % threads];
    nse_barrier();
  }
}

TEST(Scheduler, NoThreadPassesABarrierBeforeAllHaveReachedIt) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Exchange data{std::vector<int64_t>(256), std::vector<int64_t>(256)};
    EXPECT_FALSE((launchTest<exchange>({1, 256, seed}, data)));
    for (size_t i = 0; i < 256; ++i)
      EXPECT_EQ(data.results[i],
                static_cast<int64_t>(3 * ((i + 100) % 256) + 3));
  }
}

void exchangeUnsynchronised(Exchange &data) {
  auto thread = static_cast<size_t>(nse_thread_id());
  data.values[thread] = 1;
  data.results[thread] = data.values[thread ^ 1];
}

TEST(Scheduler, AMissingBarrierShows) {
  Exchange data{std::vector<int64_t>(64), std::vector<int64_t>(64)};
  EXPECT_FALSE((launchTest<exchangeUnsynchronised>({1, 64}, data)));
  EXPECT_THAT(data.results, testing::Contains(0));
}

void recordOrder(std::vector<int64_t> &order) {
  order.push_back(nse_thread_id());
  nse_barrier();
  order.push_back(nse_thread_id());
}

std::vector<int64_t> getOrder(uint64_t seed) {
  std::vector<int64_t> order;
  EXPECT_FALSE((launchTest<recordOrder>({1, 64, seed}, order)));
  EXPECT_EQ(order.size(), 128u);
  return order;
}

TEST(Scheduler, TheSeedAloneMakesTheOrder) {
  EXPECT_EQ(getOrder(3), getOrder(3));
  EXPECT_NE(getOrder(3), getOrder(4));
}

void skipBarrier(int64_t &absent) {
  if (nse_thread_id() != absent)
    nse_barrier();
}

TEST(Deadlock, AThreadThatFinishesBeforeTheBarrier) {
  int64_t absent = 77;
  std::optional<KernelError> error =
      launchTest<skipBarrier>({3, 128, 1}, absent);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::Convergence);
  EXPECT_THAT(error->message,
              AllOf(HasSubstr("kernel test, block "),
                    HasSubstr("thread 0 (lane 0 of warp 0) waits at the "
                              "barrier of the block for ever: thread 77 (lane "
                              "13 of warp 2) has finished")));
}

void syncOrBarrier(uint32_t &mask) {
  if (nse_thread_id() % 32 < 16)
    nse_warp_sync(mask);
  else
    nse_barrier();
}

TEST(Deadlock, ALaneThatWaitsElsewhere) {
  uint32_t mask = 0xffffffff;
  EXPECT_EQ(getMessage(launchTest<syncOrBarrier>({1, 32}, mask)),
            "kernel test, block 0: thread 0 (lane 0 of warp 0) is at the warp "
            "barrier of lanes 0xffffffff for ever: thread 16 (lane 16 of warp "
            "0) waits at the barrier of the block");
}

void disagreeAboutMask(uint32_t &mask) {
  nse_warp_sync(nse_thread_id() == 5 ? mask : 0xffffffff);
}

TEST(Deadlock, LanesThatDisagreeAboutTheMask) {
  uint32_t mask = 0x0000ffff;
  EXPECT_EQ(getMessage(launchTest<disagreeAboutMask>({1, 32}, mask)),
            "kernel test, block 0: thread 0 (lane 0 of warp 0) is at the warp "
            "barrier of lanes 0xffffffff for ever: thread 5 (lane 5 of warp 0) "
            "is at the warp barrier of lanes 0x0000ffff");
}

void syncAll(uint32_t &mask) { nse_warp_sync(mask); }

TEST(Deadlock, ALaneThatDoesNotExist) {
  uint32_t mask = 0xffffffff;
  EXPECT_EQ(getMessage(launchTest<syncAll>({1, 40}, mask)),
            "kernel test, block 0: thread 32 (lane 0 of warp 1) is at the warp "
            "barrier of lanes 0xffffffff for ever: lane 8 of warp 1 does not "
            "exist");
}

TEST(Convergence, ALaneOutsideItsOwnMask) {
  uint32_t mask = 0xfffffffe;
  EXPECT_EQ(getMessage(launchTest<syncAll>({1, 1}, mask)),
            "kernel test, block 0: thread 0 (lane 0 of warp 0) is at the warp "
            "barrier of lanes 0xfffffffe, which do not include it");
}

void syncOrShuffle(uint32_t &mask) {
  if (nse_thread_id() == 3)
    nse_shuffle(mask, 0, 1, 31, NSE_SHUFFLE_BFLY);
  else
    nse_warp_sync(mask);
}

TEST(Convergence, LanesThatMeetForDifferentThings) {
  uint32_t mask = 0xffffffff;
  EXPECT_EQ(getMessage(launchTest<syncOrShuffle>({1, 32}, mask)),
            "kernel test, block 0: thread 3 (lane 3 of warp 0) is at a bfly "
            "shuffle of lanes 0xffffffff, but thread 0 (lane 0 of warp 0) is "
            "at the warp barrier of lanes 0xffffffff");
}

void failFrom(int64_t &first) {
  if (nse_block_id() >= first && nse_thread_id() == 0)
    nse_barrier();
}

TEST(Convergence, TheNextLaunchIsClean) {
  int64_t none = 100, some = 50;
  EXPECT_TRUE((launchTest<failFrom>({100, 64}, some)));
  EXPECT_FALSE((launchTest<failFrom>({100, 64}, none)));
}

} // namespace
