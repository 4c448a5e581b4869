//===- DiskRates.cpp - Throughput of a disk -------------------------------===//

#include "DiskRates.h"
#include "RowFile.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <vector>

namespace neuroshard::runtime {

namespace {

/// Of 128 f32 and a state of the row: no whole block of a disk.
constexpr int64_t kRowBytes =
    recordBytes({.perRow = 1}, /*width=*/128, ElementType::F32);
/// Rows of a transfer, as many as a batch of thousands of samples fetches.
constexpr int64_t kRowsAtATime = 16384;
/// Enough for a steady rate, few enough for a person who waits.
constexpr std::chrono::duration<double> kLeastTime(2);

/// Rows of a file and memory for those of one transfer.
class Transfers {
public:
  Transfers(const std::string &directory, int64_t rows)
      : file(directory, "measurement", rows, kRowBytes),
        memory(std::min(rows, kRowsAtATime) * kRowBytes),
        parts{{0, kRowBytes, memory.data()}}, rows(rows) {}

  /// Seconds for all rows, one after the other.
  double runAll(IoDirection direction) {
    double seconds = 0;
    for (int64_t first = 0; first < rows; first += kRowsAtATime) {
      std::vector<CachedRow> some;
      for (int64_t row = first; row < std::min(rows, first + kRowsAtATime);
           ++row)
        some.push_back({row, row - first});
      seconds += run(direction, some);
    }
    return seconds;
  }

  /// Transfers per second where as many rows are written back, which takes two
  /// each, as are read.
  double runAtRandom() {
    std::mt19937_64 random(1);
    double seconds = 0, count = 0;
    while (seconds < kLeastTime.count()) {
      std::vector<CachedRow> read = draw(random), written = draw(random);
      seconds += run(IoDirection::Read, read);
      seconds += run(IoDirection::Write, written);
      count += static_cast<double>(read.size() + 2 * written.size());
    }
    return count / seconds;
  }

private:
  /// Rows of a batch, each once.
  std::vector<CachedRow> draw(std::mt19937_64 &random) const {
    std::uniform_int_distribution<int64_t> row(0, rows - 1);
    std::set<int64_t> drawn;
    for (int64_t i = 0; i < std::min(rows, kRowsAtATime); ++i)
      drawn.insert(row(random));
    std::vector<CachedRow> some;
    for (int64_t one : drawn)
      some.push_back({one, std::ssize(some)});
    return some;
  }

  double run(IoDirection direction, const std::vector<CachedRow> &some) {
    auto start = std::chrono::steady_clock::now();
    file.transfer(io, direction, some, parts);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

  RowFile file;
  PageBlock memory;
  std::vector<RecordPart> parts;
  int64_t rows;
  RowIo io;
};

} // namespace

DiskRates measureDisk(const std::string &directory, int64_t bytes) {
  Transfers transfers(directory, std::max<int64_t>(1, bytes / kRowBytes));
  transfers.runAll(IoDirection::Write);
  double perSecond = transfers.runAtRandom();
  return {perSecond,
          static_cast<double>(bytes) / transfers.runAll(IoDirection::Read)};
}

} // namespace neuroshard::runtime
