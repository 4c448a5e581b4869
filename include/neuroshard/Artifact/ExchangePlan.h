//===- ExchangePlan.h - Tables, lookups and their shards -------*- C++ -*-===//
//
// What the exchanges between devices follow from. It is a part of the manifest
// of an artifact; the planner makes one from a problem and the shards of a
// plan.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_EXCHANGEPLAN_H
#define NEUROSHARD_ARTIFACT_EXCHANGEPLAN_H

#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/Types.h"
#include "neuroshard/Model/WireType.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// Half-open range of rows, columns, bags or ids.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool overlaps(const Range &other) const {
    return begin < other.end && other.begin < end;
  }
  bool operator==(const Range &) const = default;
  auto operator<=>(const Range &) const = default;
};

struct TableSpec {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  ElementType elementType = ElementType::F32;
  /// None: nothing trains the table, so it has no state.
  std::optional<Optimizer> optimizer;

  bool trained() const { return optimizer.has_value(); }
  OptimizerStates states() const {
    return optimizer ? optimizerStates(*optimizer) : OptimizerStates();
  }
  /// Those that callers see, who see rows that have caught up.
  OptimizerStates visibleStates() const {
    return optimizer ? propertiesOf(optimizer->kind).states : OptimizerStates();
  }
  int64_t normsPerRow() const {
    return optimizer ? neuroshard::normsPerRow(optimizer->kind) : 0;
  }
};

/// A lookup of one feature of an exchange in one table.
struct ExchangeLookup {
  int32_t table = 0;
  int32_t feature = 0;
  Pooling pooling = Pooling::Sum;
  bool weighted = false;
  std::optional<int64_t> paddingIdx;
  ElementType resultType = ElementType::F32;

  bool pooled() const { return pooling != Pooling::None; }
  /// Pooled lookups leave padding ids out; unpooled ones look them up.
  bool dropsPadding() const { return pooled() && paddingIdx.has_value(); }
};

/// The lookups of one jagged input.
struct ExchangeSpec {
  std::string input;
  IdType idType = IdType::I64;
  bool weighted = false;
  std::vector<std::string> features;
  std::vector<ExchangeLookup> lookups;
  /// What errors about the input begin with. Set by parseManifest: nothing if
  /// the model has no other input, since its name is the compiler's and users
  /// know their features.
  std::string where;

  /// Of the ids of the input.
  int32_t idBytes() const {
    return static_cast<int32_t>(neuroshard::idBytes(idType));
  }
};

struct ShardSpec {
  std::string name;
  int32_t table = 0;
  Range rows;
  Range cols;
  std::vector<int32_t> devices; ///< ascending.
  Tier tier = Tier::Hbm;
  CacheSpec cache = {};
  Route route = Route::Auto;
  int64_t syncEvery = 0; ///< Shard::syncEvery.

  bool copiesDrift() const { return syncEvery > 0; }
  /// Several devices have it.
  bool hasCopies() const { return devices.size() > 1; }
  bool hasRowCache() const { return cache.rows > 0; }
};

struct LookupBinding {
  int32_t exchange = 0;
  int32_t lookup = 0;
  int32_t slot = 0;
};

struct DeviceBinding {
  int32_t program = 0;
  std::vector<int32_t> slots; ///< shard of each slot.
  std::vector<LookupBinding> lookups;

  /// Of a shard; null if the device has none.
  const LookupBinding *firstLookupOf(int32_t shard) const;
};

struct ExchangePlan {
  int32_t numDevices = 0;
  OptimizerSemantics optimizerSemantics = OptimizerSemantics::Exact;
  /// In which results and gradients travel between devices.
  WireType wireType;
  /// Devices with better links inside a group than between groups; groups are
  /// of one size. Empty: one group of all.
  std::vector<std::vector<int32_t>> groups;
  std::vector<TableSpec> tables;
  std::vector<ExchangeSpec> exchanges;
  std::vector<ShardSpec> shards;
  std::vector<DeviceBinding> bindings; ///< one per device.

  /// Of the ids that devices exchange and kernels read: packedIdType().
  int32_t packedIdBytes(const ExchangeSpec &exchange) const;
  const TableSpec &tableOf(const ShardSpec &shard) const {
    return tables[static_cast<size_t>(shard.table)];
  }
  const ShardSpec &shardOfSlot(size_t device, int32_t slot) const {
    const std::vector<int32_t> &slots = bindings[device].slots;
    return shards[static_cast<size_t>(slots[static_cast<size_t>(slot)])];
  }
  /// A whole table on every device whose copies do not drift: ids stay where
  /// the batch is.
  bool isReplicated(const ShardSpec &shard) const;
  /// On several devices otherwise: each rank sends ids to one of the copies.
  bool isCopied(const ShardSpec &shard) const {
    return shard.hasCopies() && !isReplicated(shard);
  }
  /// Whether some shard has a row cache.
  bool hasRowCaches() const;
  /// Per table: whether some shard is copied.
  std::vector<bool> tablesWithCopies() const;
  /// The numbers of trained shards that are copied and exchange sums of
  /// gradients in each step, ascending.
  std::vector<int32_t> trainedCopies() const;
  /// Those whose copies drift.
  std::vector<int32_t> driftingCopies() const;
  /// Per table: by what its gradients are multiplied: the number of copies if
  /// these drift, since each gets those of its readers alone; else 1.
  std::vector<float> gradientFactors() const;
  /// Per table: whether the owners of its rows must exchange gradient norms,
  /// by needsNormExchange() of the Model.
  std::vector<bool> tablesWithNormExchange() const;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_EXCHANGEPLAN_H
