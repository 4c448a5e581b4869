//===- DiskRates.cpp - How fast rows come from a disk ---------------------===//

#include "DiskRates.h"
#include "RowFile.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

namespace neuroshard::runtime {

namespace {

constexpr int64_t kRowBytes = 4096;
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

  /// Rows per second.
  double readAtRandom() {
    std::mt19937_64 random(1);
    std::uniform_int_distribution<int64_t> draw(0, rows - 1);
    double seconds = 0, count = 0;
    while (seconds < kLeastTime.count()) {
      std::vector<CachedRow> some;
      for (int64_t i = 0; i < std::min(rows, kRowsAtATime); ++i)
        some.push_back({draw(random), i});
      seconds += run(IoDirection::Read, some);
      count += static_cast<double>(some.size());
    }
    return count / seconds;
  }

private:
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
  double perRead = transfers.readAtRandom();
  return {perRead,
          static_cast<double>(bytes) / transfers.runAll(IoDirection::Read)};
}

} // namespace neuroshard::runtime
