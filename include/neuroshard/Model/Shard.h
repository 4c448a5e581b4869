//===- Shard.h - One rectangle of a table and where it lives ----*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_SHARD_H
#define NEUROSHARD_MODEL_SHARD_H

#include "neuroshard/Model/RowCache.h"
#include "neuroshard/Model/Target.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// How pooled results of a table, and their gradients, travel between the
/// groups of the topology's innermost level, such as nodes: from the owners to
/// the ranks of the samples directly, or by way of a relay in the owner's
/// group, which adds up what the group has of a sample and sends it on.
/// Auto: by relay where two devices of a group have partial sums of the same
/// columns.
enum class Route { Auto, Direct, Relay };

std::string_view toString(Route route);
std::optional<Route> parseRoute(std::string_view text);

/// Rows and columns of a table or a part of it.
struct Extent {
  int64_t rows = 0;
  int64_t cols = 0;
  bool operator==(const Extent &) const = default;
};

/// Whether copies of a part of a table are a replicated table: a whole one on
/// each of several devices.
constexpr bool isWholeOnAll(const Extent &part, const Extent &table,
                            int64_t copies, int64_t devices) {
  return copies > 1 && copies == devices && part == table;
}

/// Rows [rowBegin, rowEnd) x columns [colBegin, colEnd) of a table.
///
/// Each device has a copy of the shard. A whole table on all devices is
/// replicated ("data-parallel"), unless its copies drift: ids stay where the
/// batch is. Of other copies each rank reads the nearest one.
struct Shard {
  std::string name;
  std::string table;
  int64_t rowBegin = 0;
  int64_t rowEnd = 0;
  int64_t colBegin = 0;
  int64_t colEnd = 0;
  std::vector<int> devices;
  Tier tier = Tier::Hbm;
  /// Of a shard in a lower tier, for target native.
  CacheSpec cache = {};
  /// The same for all shards of a table.
  Route route = Route::Auto;
  /// 0: copies apply the same sums in each step and keep the same bits. k: each
  /// applies the gradients of its readers alone, and weights and optimizer
  /// states are averaged over the copies after each k-th step. The same for all
  /// shards of a table.
  int64_t syncEvery = 0;

  int64_t rows() const { return rowEnd - rowBegin; }
  int64_t width() const { return colEnd - colBegin; }
  bool hasCopies() const { return devices.size() > 1; }
  bool copiesDrift() const { return syncEvery > 0; }
  bool operator==(const Shard &) const = default;
};

/// Most steps between two averages of copies that drift.
inline constexpr int64_t kMaxSyncEvery = 1'000'000'000;

/// What is wrong with Shard::syncEvery of a shard on so many devices; "" if
/// nothing.
std::string syncError(int64_t syncEvery, int64_t copies);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_SHARD_H
