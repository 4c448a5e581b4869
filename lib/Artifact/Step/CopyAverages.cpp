//===- CopyAverages.cpp - Averages of copies that drift -------------------===//

#include "neuroshard/Artifact/CopyAverages.h"

#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <numeric>

namespace neuroshard {

static constexpr int64_t kMessageAlign = 16;

int64_t AveragedArray::bytes(int64_t rows) const {
  return roundUp(rows * rowBytes, kMessageAlign);
}

std::vector<AveragedArray> averagedArrays(const ExchangePlan &plan,
                                          const ShardSpec &shard) {
  const TableSpec &table = plan.tableOf(shard);
  OptimizerStates states = table.states();
  int64_t width = shard.cols.size();
  std::vector<AveragedArray> arrays = {
      {formatOf(table.elementType), paddedRowBytes(width, table.elementType)}};
  for (int64_t i = 0; i < states.count(); ++i)
    arrays.push_back(
        {WireFormat::F32, states.isPerRow(i)
                              ? elementBytes(ElementType::F32)
                              : paddedRowBytes(width, ElementType::F32)});
  return arrays;
}

int64_t averagedBytes(const std::vector<AveragedArray> &arrays, int64_t rows) {
  int64_t bytes = 0;
  for (const AveragedArray &array : arrays)
    bytes += array.bytes(rows);
  return bytes;
}

Range AveragedRows::part(size_t copy) const {
  int64_t each = roundUp((rows.size() + copies - 1) / copies, kRowsOfAverage);
  auto number = static_cast<int64_t>(copy);
  return {std::min(rows.begin + number * each, rows.end),
          std::min(rows.begin + (number + 1) * each, rows.end)};
}

std::vector<int32_t> averagedShards(const ExchangePlan &plan,
                                    std::vector<int32_t> drifting,
                                    int64_t step) {
  std::erase_if(drifting, [&](int32_t shard) {
    return step % plan.shards[static_cast<size_t>(shard)].syncEvery != 0;
  });
  return drifting;
}

int64_t averagedRowsOfRound(const ExchangePlan &plan, const ShardSpec &shard) {
  int64_t unit = kRowsOfAverage * static_cast<int64_t>(shard.devices.size());
  int64_t bytes = averagedBytes(averagedArrays(plan, shard), unit);
  return std::min(shard.rows.size(),
                  std::max<int64_t>(1, kAverageRoundBytes / bytes) * unit);
}

namespace {

/// Where the next rows of each device go.
class RoundPlacer {
public:
  explicit RoundPlacer(int32_t devices)
      : last(static_cast<size_t>(devices)),
        bytesOfLast(static_cast<size_t>(devices)) {}

  /// Adds rows to the first round that has room on all of their devices and is
  /// not before their last ones.
  void add(const AveragedRows &rows, const std::vector<int32_t> &devices,
           int64_t bytes) {
    size_t round = 0;
    for (int32_t device : devices)
      round = std::max(round, last[static_cast<size_t>(device)]);
    auto isFull = [&](int32_t device) {
      auto d = static_cast<size_t>(device);
      return last[d] == round && bytesOfLast[d] > 0 &&
             bytesOfLast[d] + bytes > kAverageRoundBytes;
    };
    if (std::ranges::any_of(devices, isFull))
      ++round;
    rounds.resize(std::max(rounds.size(), round + 1));
    rounds[round].push_back(rows);
    for (int32_t device : devices) {
      auto d = static_cast<size_t>(device);
      bytesOfLast[d] = (last[d] == round ? bytesOfLast[d] : 0) + bytes;
      last[d] = round;
    }
  }

  std::vector<AverageRound> rounds;

private:
  std::vector<size_t> last; ///< round of each device.
  std::vector<int64_t> bytesOfLast;
};

/// Calls function(rows) for the pieces of a shard.
template <typename Function>
void forPieces(const ExchangePlan &plan, int32_t number, const ShardSpec &shard,
               const Function &function) {
  int64_t each = averagedRowsOfRound(plan, shard);
  for (int64_t begin = 0; begin < shard.rows.size(); begin += each)
    function(AveragedRows{number,
                          {begin, std::min(begin + each, shard.rows.size())},
                          static_cast<int64_t>(shard.devices.size())});
}

} // namespace

std::vector<AverageRound> averageRounds(const ExchangePlan &plan,
                                        const std::vector<int32_t> &shards) {
  RoundPlacer placer(plan.numDevices);
  for (int32_t number : shards) {
    const ShardSpec &shard = plan.shards[static_cast<size_t>(number)];
    std::vector<AveragedArray> arrays = averagedArrays(plan, shard);
    forPieces(plan, number, shard, [&](const AveragedRows &rows) {
      placer.add(rows, shard.devices, averagedBytes(arrays, rows.rows.size()));
    });
  }
  return std::move(placer.rounds);
}

void countAverage(const ExchangePlan &plan, const ShardSpec &shard,
                  const std::function<void(size_t, size_t, int64_t)> &add) {
  std::vector<AveragedArray> arrays = averagedArrays(plan, shard);
  auto copies = static_cast<int64_t>(shard.devices.size());
  int64_t each = averagedRowsOfRound(plan, shard);
  int64_t whole = shard.rows.size() / each;
  AveragedRows full{0, {0, each}, copies};
  AveragedRows rest{0, {0, shard.rows.size() - whole * each}, copies};
  std::vector<int64_t> bytes;
  for (size_t copy = 0; copy < shard.devices.size(); ++copy)
    bytes.push_back(whole * averagedBytes(arrays, full.part(copy).size()) +
                    averagedBytes(arrays, rest.part(copy).size()));
  // The receiver's part, to be averaged; then the sender's own average.
  for (size_t from = 0; from < bytes.size(); ++from)
    for (size_t to = 0; to < bytes.size(); ++to)
      add(static_cast<size_t>(shard.devices[from]),
          static_cast<size_t>(shard.devices[to]), bytes[to] + bytes[from]);
}

std::vector<int64_t> averageMessages(const ExchangePlan &plan) {
  std::vector<int64_t> most(static_cast<size_t>(plan.numDevices));
  for (const AverageRound &round : averageRounds(plan, plan.driftingCopies())) {
    std::vector<int64_t> bytes(most.size());
    for (const AveragedRows &rows : round) {
      const ShardSpec &shard = plan.shards[static_cast<size_t>(rows.shard)];
      std::vector<AveragedArray> arrays = averagedArrays(plan, shard);
      std::vector<int64_t> parts;
      for (size_t copy = 0; copy < shard.devices.size(); ++copy)
        parts.push_back(averagedBytes(arrays, rows.part(copy).size()));
      int64_t all = std::accumulate(parts.begin(), parts.end(), int64_t{0});
      // The parts of all copies, and its own for each.
      for (size_t copy = 0; copy < parts.size(); ++copy)
        bytes[static_cast<size_t>(shard.devices[copy])] +=
            all + rows.copies * parts[copy];
    }
    for (size_t device = 0; device < most.size(); ++device)
      most[device] = std::max(most[device], bytes[device]);
  }
  return most;
}

} // namespace neuroshard
