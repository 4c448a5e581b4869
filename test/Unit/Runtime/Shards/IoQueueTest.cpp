//===- IoQueueTest.cpp - Transfers between files and memory ---------------===//
//
// Shows that jobs run in their order, that a failed one fails all waits with
// its text, and that rows are read and written by io_uring and from mapped
// pages alike.
//
//===----------------------------------------------------------------------===//

#include "Shards/IoQueue.h"
#include "Shards/RowFile.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace neuroshard::runtime {
namespace {

TEST(IoQueue, RunsJobsInTheirOrder) {
  std::vector<int> seen;
  IoQueue queue;
  int64_t last = 0;
  for (int i = 0; i < 100; ++i)
    last = queue.submit([&seen, i](RowIo &) { seen.push_back(i); });
  queue.wait(last);
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

std::string errorOf(const std::function<void()> &work) {
  try {
    work();
  } catch (const RuntimeError &error) {
    return error.what();
  }
  return "";
}

TEST(IoQueue, AFailedJobFailsAllLaterWaits) {
  IoQueue queue;
  bool ran = false;
  queue.submit([](RowIo &) { fail("the disk is gone"); });
  int64_t last = queue.submit([&](RowIo &) { ran = true; });
  EXPECT_EQ(errorOf([&] { queue.wait(last); }), "the disk is gone");
  EXPECT_EQ(errorOf([&] { queue.wait(1); }), "the disk is gone");
  EXPECT_FALSE(ran);
}

TEST(RowIo, ReadsAndWritesManyRanges) {
  constexpr int64_t kCount = 1000, kBytes = 100;
  std::string path = testing::TempDir() + "rows-XXXXXX";
  int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  unlink(path.c_str());
  std::vector<char> values(kCount * kBytes), found(kCount * kBytes);
  std::iota(values.begin(), values.end(), 0);
  auto rangesOf = [&](std::vector<char> &memory) {
    std::vector<FileRange> ranges;
    for (int64_t i = 0; i < kCount; ++i) { // in two parts, backwards
      char *first = memory.data() + i * kBytes;
      ranges.push_back({(kCount - 1 - i) * kBytes,
                        kBytes,
                        {iovec{first, 40}, iovec{first + 40, 60}},
                        2});
    }
    return ranges;
  };
  RowIo io;
  std::vector<FileRange> written = rangesOf(values), read = rangesOf(found);
  ASSERT_EQ(ftruncate(file, kCount * kBytes), 0);
  io.writePages(file, written);
  io.run(file, IoDirection::Read, read);
  EXPECT_EQ(found, values);

  std::vector<FileRange> beyond = {
      {kCount * kBytes, 10, {iovec{found.data(), 10}}, 1}};
  EXPECT_EQ(errorOf([&] { io.run(file, IoDirection::Read, beyond); }),
            "cannot read rows from the file of a shard in tier ssd: the file "
            "ended");
  close(file);
}

TEST(RowFile, MovesRowsWhetherPagesAreInMemoryOrNot) {
  constexpr int64_t kRows = 5000, kWeights = 48, kState = 4;
  RowFile file(testing::TempDir(), "user", kRows, 64);
  EXPECT_EQ(file.bytes(), kRows * 64);
  RowIo io;
  std::vector<std::byte> weights(kRows * kWeights), states(kRows * kState);
  std::vector<RecordPart> parts = {{0, kWeights, weights.data()},
                                   {kWeights, kState, states.data()}};
  std::vector<CachedRow> rows;
  for (int64_t row = 0; row < kRows; row += 3)
    rows.push_back({row, kRows - 1 - row});
  for (bool areDropped : {false, true}) {
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = std::byte(i * 7 + areDropped);
    for (size_t i = 0; i < states.size(); ++i)
      states[i] = std::byte(i * 5 + areDropped);
    if (areDropped) // the file's pages leave the mapping, if not memory
      madvise(file.data(), static_cast<size_t>(file.bytes()), MADV_PAGEOUT);
    file.transfer(io, IoDirection::Write, rows, parts);
    for (const CachedRow &row : rows)
      ASSERT_EQ(std::memcmp(file.data() + row.row * 64,
                            weights.data() + row.place * kWeights, kWeights),
                0);
    std::vector<std::byte> before = weights, beforeStates = states;
    if (areDropped)
      madvise(file.data(), static_cast<size_t>(file.bytes()), MADV_PAGEOUT);
    for (const CachedRow &row : rows) {
      std::fill_n(weights.data() + row.place * kWeights, kWeights,
                  std::byte(1));
      std::fill_n(states.data() + row.place * kState, kState, std::byte(1));
    }
    file.transfer(io, IoDirection::Read, rows, parts);
    EXPECT_EQ(weights, before);
    EXPECT_EQ(states, beforeStates);
  }
}

/// Random rows are written and read while pages come and go, also those of
/// neighbours that share a page or a block with them.
TEST(RowFile, KeepsAllValuesWhilePagesComeAndGo) {
  constexpr int64_t kRows = 3000, kBytes = 528;
  RowFile file(testing::TempDir(), "user", kRows, kBytes);
  RowIo io;
  std::vector<std::byte> places(kRows * kBytes);
  std::vector<RecordPart> parts = {{0, kBytes, places.data()}};
  std::vector<int> expected(kRows, 0);
  std::mt19937 random(2);
  auto below = [&](int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  };
  auto valueAt = [&](int64_t place) {
    return reinterpret_cast<int *>(places.data() + place * kBytes);
  };
  for (int round = 1; round <= 300; ++round) {
    std::set<int64_t> chosen;
    for (int i = 0; i < 200; ++i)
      chosen.insert(below(kRows));
    std::vector<CachedRow> rows;
    for (int64_t row : chosen)
      rows.push_back({row, static_cast<int64_t>(rows.size())});
    std::ranges::shuffle(rows, random);
    file.transfer(io, IoDirection::Read, rows, parts);
    for (const CachedRow &row : rows) {
      int *values = valueAt(row.place);
      ASSERT_EQ(values[0], expected[static_cast<size_t>(row.row)]) << round;
      ASSERT_EQ(values[kBytes / 4 - 1], values[0]) << round;
      std::fill_n(values, kBytes / 4, round);
      expected[static_cast<size_t>(row.row)] = round;
    }
    int64_t page = below(file.bytes() / 4096) * 4096;
    madvise(file.data() + page, static_cast<size_t>(file.bytes() - page) / 2,
            MADV_PAGEOUT);
    file.transfer(io, IoDirection::Write, rows, parts);
    // Some are read, and so brought, by way of the mapping.
    for (int i = 0; i < 20; ++i) {
      int64_t row = below(kRows);
      int found = 0;
      std::memcpy(&found, file.data() + row * kBytes, sizeof(found));
      ASSERT_EQ(found, expected[static_cast<size_t>(row)]) << round;
    }
  }
}

TEST(RowFile, NeedsItsRoom) {
  std::string error = errorOf(
      [] { RowFile(testing::TempDir(), "user", int64_t{1} << 40, 1 << 12); });
  EXPECT_THAT(error,
              testing::HasSubstr("shard \"user\" needs 4294967296.00 MiB"));
  EXPECT_THAT(errorOf([] { RowFile("/nonexistent", "user", 1, 16); }),
              testing::HasSubstr("cannot create the file of shard \"user\""));
}

} // namespace
} // namespace neuroshard::runtime
