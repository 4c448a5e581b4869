//===- CopyAverages.h - Averages of copies that drift -----------*- C++ -*-===//
//
// Copies of a shard with `sync_every` k apply the gradients of their own
// readers, times the number of copies, and are averaged after each k-th step:
// weights and optimizer states. Each copy averages an even part of the rows and
// sends it to all, so that all get the same bits. Large shards are averaged
// piece by piece, in rounds that take bounded memory of each device.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_COPYAVERAGES_H
#define NEUROSHARD_ARTIFACT_COPYAVERAGES_H

#include "neuroshard/Artifact/ExchangePlan.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace neuroshard {

/// One array of a shard: its weights or a state.
struct AveragedArray {
  WireFormat format; ///< of its values.
  int64_t rowBytes;  ///< from row to row, padding included.

  /// Of so many rows in a message, up to a multiple of 16 bytes.
  int64_t bytes(int64_t rows) const;
};

/// The weights, then the states.
std::vector<AveragedArray> averagedArrays(const ExchangePlan &plan,
                                          const ShardSpec &shard);

/// Of all arrays.
int64_t averagedBytes(const std::vector<AveragedArray> &arrays, int64_t rows);

/// What a device sends at a time in a round, at most, but for what rounding up
/// adds to parts and arrays.
inline constexpr int64_t kAverageRoundBytes = 32 << 20;
/// Parts of copies have a multiple of so many rows, but for the last.
inline constexpr int64_t kRowsOfAverage = 4;

/// Some rows of a shard, counted from its first, in one round.
struct AveragedRows {
  int32_t shard;
  Range rows;
  int64_t copies;

  /// Those that the copy of this number averages.
  Range part(size_t copy) const;
};

using AverageRound = std::vector<AveragedRows>;

/// Of the shards whose copies drift those that a step of this number averages.
std::vector<int32_t> averagedShards(const ExchangePlan &plan,
                                    std::vector<int32_t> drifting,
                                    int64_t step);

/// The rounds in which these shards are averaged, the same on all ranks.
std::vector<AverageRound> averageRounds(const ExchangePlan &plan,
                                        const std::vector<int32_t> &shards);

/// Rows of a shard in one round.
int64_t averagedRowsOfRound(const ExchangePlan &plan, const ShardSpec &shard);

/// Calls add(sender, receiver, bytes) for all that copies of a shard send, to
/// themselves too, each time they are averaged.
void countAverage(const ExchangePlan &plan, const ShardSpec &shard,
                  const std::function<void(size_t, size_t, int64_t)> &add);

/// Bytes of the messages of each device in the largest round of a step that
/// averages all copies that drift: as many are sent as received.
std::vector<int64_t> averageMessages(const ExchangePlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_COPYAVERAGES_H
