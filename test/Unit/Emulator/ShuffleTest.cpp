//===- ShuffleTest.cpp - Shuffles and votes -------------------------------===//
//
// Compares shuffles and votes with PTX's definitions, for whole warps and for
// groups of 4, 8 and 16 lanes that take different branches.
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard::emulator;

namespace {

struct Group {
  uint32_t lanes; // of a group
  std::vector<int> sums, rounds;
};

uint32_t getMask(uint32_t lanes) {
  auto first = static_cast<uint32_t>(nse_thread_id()) % 32 / lanes * lanes;
  return (lanes == 32 ? ~0u : (1u << lanes) - 1) << first;
}

/// Sums the threads of each group by butterflies, each group in a loop of its
/// own length.
void sumGroups(Group &data) {
  auto thread = static_cast<uint32_t>(nse_thread_id());
  int rounds = static_cast<int>(thread / data.lanes % 5);
  for (int round = 0; round <= rounds; ++round) {
    uint32_t sum = thread;
    for (uint32_t offset = 1; offset < data.lanes; offset *= 2)
      sum += static_cast<uint32_t>(
          nse_shuffle(getMask(data.lanes), sum, offset, 31, NSE_SHUFFLE_BFLY));
    data.sums[thread] = static_cast<int>(sum);
    ++data.rounds[thread];
  }
}

TEST(Shuffle, GroupsOfLanesGoTheirOwnWays) {
  for (uint32_t lanes : {4u, 8u, 16u, 32u})
    for (uint64_t seed = 0; seed < 10; ++seed) {
      Group data{lanes, std::vector<int>(256), std::vector<int>(256)};
      ASSERT_FALSE((launchTest<sumGroups>({1, 256, seed}, data)));
      for (uint32_t i = 0; i < 256; ++i) {
        uint32_t first = i / lanes * lanes;
        EXPECT_EQ(data.sums[i],
                  static_cast<int>(lanes * first + lanes * (lanes - 1) / 2));
        EXPECT_EQ(data.rounds[i], static_cast<int>(i / lanes % 5) + 1);
      }
    }
}

void sumWithWholeMask(Group &data) {
  auto thread = static_cast<uint32_t>(nse_thread_id());
  int rounds = static_cast<int>(thread / data.lanes % 5);
  for (int round = 0; round <= rounds; ++round)
    nse_shuffle(~0u, thread, 1, 31, NSE_SHUFFLE_BFLY);
}

TEST(Shuffle, AMaskThatIsTooWideForDivergentGroupsIsFound) {
  for (uint32_t lanes : {4u, 8u, 16u}) {
    Group data{lanes, {}, {}};
    std::optional<KernelError> error =
        launchTest<sumWithWholeMask>({1, 32}, data);
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message, testing::HasSubstr("has finished"));
  }
}

struct Read {
  int kind;
  uint32_t offset, maskAndClamp;
  uint32_t mask = ~0u;
  std::vector<uint64_t> results = std::vector<uint64_t>(32);
};

void readLane(Read &data) {
  auto lane = static_cast<uint32_t>(nse_thread_id());
  if (data.mask >> lane & 1)
    data.results[lane] = nse_shuffle(data.mask, 100 + lane, data.offset,
                                     data.maskAndClamp, data.kind);
}

/// shfl.sync's pseudocode, word for word.
uint64_t expectLane(const Read &data, int lane) {
  int bval = data.offset & 31, cval = data.maskAndClamp & 31;
  int segmask = data.maskAndClamp >> 8 & 31;
  int maxLane = (lane & segmask) | (cval & ~segmask & 31);
  int minLane = lane & segmask;
  int j = 0;
  bool p = false;
  switch (data.kind) {
  case NSE_SHUFFLE_UP:
    j = lane - bval;
    p = j >= maxLane;
    break;
  case NSE_SHUFFLE_DOWN:
    j = lane + bval;
    p = j <= maxLane;
    break;
  case NSE_SHUFFLE_BFLY:
    j = lane ^ bval;
    p = j <= maxLane;
    break;
  case NSE_SHUFFLE_IDX:
    j = minLane | (bval & ~segmask & 31);
    p = j <= maxLane;
    break;
  }
  if (!p)
    j = lane;
  return static_cast<uint64_t>(p) << 32 | static_cast<uint64_t>(100 + j);
}

TEST(Shuffle, EveryKindReadsAsPtxSays) {
  for (int kind :
       {NSE_SHUFFLE_BFLY, NSE_SHUFFLE_UP, NSE_SHUFFLE_DOWN, NSE_SHUFFLE_IDX})
    for (uint32_t segment : {0u, 16u, 24u, 28u, 30u})
      for (uint32_t clamp : {0u, 7u, 15u, 31u})
        for (uint32_t offset : {0u, 1u, 3u, 8u, 17u, 31u, 33u}) {
          Read data{kind, offset, segment << 8 | clamp};
          ASSERT_FALSE((launchTest<readLane>({1, 32}, data)));
          for (int lane = 0; lane < 32; ++lane)
            EXPECT_EQ(data.results[static_cast<size_t>(lane)],
                      expectLane(data, lane))
                << "kind " << kind << " segment " << segment << " clamp "
                << clamp << " offset " << offset << " lane " << lane;
        }
}

TEST(Shuffle, ALaneThatTakesNoPartCannotBeRead) {
  Read data{NSE_SHUFFLE_BFLY, 16, 31, 0x0000ffff};
  std::optional<KernelError> error = launchTest<readLane>({1, 32}, data);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message,
            "kernel test, block 0: thread 0 (lane 0 of warp 0) is at a bfly "
            "shuffle of lanes 0x0000ffff, and reads lane 16, which is not "
            "among them");
}

void vote(std::vector<uint32_t> &results) {
  auto thread = static_cast<uint32_t>(nse_thread_id());
  results[thread] = nse_ballot(getMask(8), thread % 3 == 0 ? 4 : 0);
}

TEST(Vote, ABallotHasTheLanesOfTheMask) {
  std::vector<uint32_t> results(64);
  ASSERT_FALSE((launchTest<vote>({1, 64}, results)));
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t expected = 0;
    for (uint32_t j = i / 8 * 8; j < i / 8 * 8 + 8; ++j)
      expected |= static_cast<uint32_t>(j % 3 == 0) << j % 32;
    EXPECT_EQ(results[i], expected);
  }
}

} // namespace
