//===- RaceTest.cpp - Detection of data races -----------------------------===//
//
// Shows which accesses RaceFinder reports and which it does not. The order of
// two accesses depends on the seed, but not whether they race.
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard::emulator;
using testing::HasSubstr;

namespace {

/// A kernel on words at addresses that are never touched.
struct Kernel64 {
  std::function<void(int64_t thread)> body;
};

void runBody(Kernel64 &kernel) { kernel.body(nse_thread_id()); }

void access(int64_t word, nse_access_kind kind, int64_t bytes = 8) {
  nse_access(reinterpret_cast<void *>(0x10000 + 8 * word), bytes, kind);
}

/// The race found, or "" with every one of some seeds; "?" if seeds differ.
std::string findRace(std::function<void(int64_t thread)> body,
                     uint32_t grid = 1) {
  Kernel64 kernel{std::move(body)};
  std::string found;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::optional<KernelError> error =
        launchTest<runBody>({grid, 64, seed, true}, kernel);
    EXPECT_TRUE(!error || error->kind == ErrorKind::Race) << error->message;
    if (seed > 0 && error.has_value() == found.empty())
      return "?";
    found = error ? error->message : "";
  }
  return found;
}

TEST(Race, ThreadsOnMemoryOfTheirOwn) {
  EXPECT_EQ(findRace([](int64_t thread) {
              access(thread, NSE_WRITE);
              access(thread, NSE_READ);
              access(thread, NSE_WRITE);
            }),
            "");
}

TEST(Race, TwoWrites) {
  EXPECT_THAT(findRace([](int64_t thread) { access(thread / 2, NSE_WRITE); }),
              AllOf(HasSubstr(" writes address 0x10"),
                    HasSubstr("has written, and nothing orders the two")));
}

TEST(Race, AReadAndAWrite) {
  auto body = [](int64_t thread) {
    access(5, thread == 40 ? NSE_WRITE : NSE_READ);
  };
  EXPECT_THAT(findRace(body), HasSubstr("nothing orders the two"));
}

TEST(Race, OnlyReads) {
  EXPECT_EQ(findRace([](int64_t) { access(5, NSE_READ); }), "");
}

TEST(Race, PartsOfAWord) {
  EXPECT_EQ(findRace([](int64_t thread) {
              nse_access(reinterpret_cast<void *>(0x10000 + 2 * thread), 2,
                         NSE_WRITE);
            }),
            "");
}

TEST(Race, AVectorThatReachesIntoAnother) {
  auto body = [](int64_t thread) { access(2 * thread, NSE_WRITE, 18); };
  EXPECT_THAT(findRace(body), HasSubstr("nothing orders the two"));
}

TEST(Race, TheBarrierOfTheBlockOrders) {
  EXPECT_EQ(findRace([](int64_t thread) {
              access(thread, NSE_WRITE);
              nse_barrier();
              access((thread + 37) % 64, NSE_READ);
              nse_barrier();
              access((thread + 11) % 64, NSE_WRITE);
            }),
            "");
}

TEST(Race, AWarpBarrierOrdersItsLanesOnly) {
  auto body = [](int64_t distance) {
    return [distance](int64_t thread) {
      access(thread, NSE_WRITE);
      nse_warp_sync(0xffu << thread % 32 / 8 * 8);
      access((thread + distance) % 64, NSE_READ);
    };
  };
  EXPECT_THAT(findRace(body(1)), HasSubstr("nothing orders the two"));
  EXPECT_EQ(findRace([](int64_t thread) {
              access(thread, NSE_WRITE);
              nse_warp_sync(0xffu << thread % 32 / 8 * 8);
              access(thread ^ 5, NSE_READ);
            }),
            "");
}

TEST(Race, OrderPassesFromGroupToGroup) {
  // Pairs, then other pairs: 0 and 3 have met through 1 or 2.
  EXPECT_EQ(findRace([](int64_t thread) {
              int64_t lane = thread % 4, first = thread % 32 / 4 * 4;
              access(thread, NSE_WRITE);
              nse_warp_sync((lane < 2 ? 0x3u : 0xcu) << first);
              nse_warp_sync((lane % 2 ? 0xau : 0x5u) << first);
              access(thread ^ 3, NSE_READ);
            }),
            "");
}

TEST(Race, ShufflesOrderNothing) {
  auto body = [](int64_t thread) {
    access(thread, NSE_WRITE);
    nse_shuffle(~0u, 0, 1, 31, NSE_SHUFFLE_BFLY);
    access(thread ^ 1, NSE_READ);
  };
  EXPECT_THAT(findRace(body), HasSubstr("nothing orders the two"));
}

TEST(Race, BlocksAreNotOrdered) {
  auto body = [](int64_t thread) {
    if (thread == 7)
      access(3, NSE_WRITE);
  };
  EXPECT_EQ(findRace(body, 1), "");
  EXPECT_THAT(findRace(body, 2), HasSubstr("which thread 7 of block "));
}

TEST(Race, AtomicOperationsMayMeetEachOtherOnly) {
  EXPECT_EQ(findRace([](int64_t) { access(0, NSE_ATOMIC); }, 3), "");
  auto body = [](int64_t thread) {
    access(0, thread == 9 ? NSE_READ : NSE_ATOMIC);
  };
  EXPECT_THAT(findRace(body), HasSubstr("nothing orders the two"));
}

struct RaceAccess {
  char *array;
  int64_t offset;
};

void readTwo(RaceAccess &data) {
  if (nse_thread_id() == 4)
    nse_access(data.array + data.offset, 2, NSE_READ);
}

TEST(Race, AnAccessThatTheGuardLetsThrough) {
  RaceAccess data{static_cast<char *>(nse_allocate(100)), 99};
  std::optional<KernelError> error =
      launchTest<readTwo>({1, 32, 0, true}, data);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::IllegalAddress);
  EXPECT_THAT(error->message, HasSubstr("byte 99 of 100 bytes"));
  data.offset = 98;
  EXPECT_FALSE((launchTest<readTwo>({1, 32, 0, true}, data)));
  nse_free(data.array);
}

TEST(Race, WhatIsReadAsInvariantIsNotWritten) {
  auto body = [](int64_t thread) {
    if (thread == 0)
      access(0, NSE_WRITE);
    nse_barrier();
    access(0, NSE_READ_INVARIANT);
  };
  EXPECT_THAT(findRace(body), AllOf(HasSubstr(" reads as invariant "),
                                    HasSubstr("in the same launch")));
  EXPECT_EQ(findRace([](int64_t) { access(0, NSE_READ_INVARIANT); }, 2), "");
}

} // namespace
