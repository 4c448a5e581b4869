//===- Manifest.h - What an artifact consists of ---------------*- C++ -*-===//
//
// The contents of manifest.json ("neuroshard.manifest/1"): tables, exchanges
// and their lookups, shards, programs, and which device binds what. A
// Manifest that parseManifest returns is consistent: every index is in range,
// every table is covered exactly once or replicated, every device binds
// exactly its shards and looks each of them up for every lookup of its table.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_MANIFEST_H
#define NEUROSHARD_ARTIFACT_MANIFEST_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard::runtime {

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

/// The values are those of the C interfaces (NSRT_F32, ...).
enum class ElementType : int32_t { F32 = 0, F16 = 1, BF16 = 2 };

inline int64_t elementBytes(ElementType type) {
  return type == ElementType::F32 ? 4 : 2;
}

enum class OptimizerKind { None, Sgd, Adagrad, RowwiseAdagrad, Adam };

/// The part of an optimizer that the runtime computes with; the rest is
/// compiled into the kernels.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::None;
  double beta1 = 0;
  double beta2 = 0;
  double initialAccumulator = 0;

  /// f32 state arrays with one value per element / per row.
  int numElementStates() const;
  int numRowStates() const;
};

struct TableSpec {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  ElementType elementType = ElementType::F32;
  OptimizerSpec optimizer;
};

enum class Pooling { Sum, Mean, None };

struct LookupSpec {
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
  /// What errors about the input begin with: nothing if the model has no other,
  /// since its name is the compiler's and users know their features.
  std::string where;
  int32_t idBytes = 8;
  bool weighted = false;
  std::vector<std::string> features;
  std::vector<LookupSpec> lookups;
};

struct ShardSpec {
  std::string name;
  int32_t table = 0;
  Range rows;
  Range cols;
  std::vector<int32_t> devices;

  /// One full copy on every device.
  bool replicated() const { return devices.size() > 1; }
};

struct LookupBinding {
  int32_t exchange = 0;
  int32_t lookup = 0;
  int32_t slot = 0;
};

struct ProgramSpec {
  std::string library; ///< file for CPUs.
  std::string gpuHash; ///< of its .gpu.json; "" if there is none.
};

struct DeviceBinding {
  int32_t program = 0;
  std::vector<int32_t> slots; ///< shard of each slot.
  std::vector<LookupBinding> lookups;
};

/// Where a device is among the groups.
struct GroupPlace {
  int32_t group = 0;
  int32_t member = 0; ///< place in the group.
};

struct Manifest {
  int32_t numDevices = 0;
  /// Column shards of a row-wise optimizer's table share one state per row.
  bool exactOptimizers = true;
  /// In which results and gradients travel between devices.
  ElementType wireType = ElementType::F32;
  /// Devices with better links inside a group than between groups; groups are
  /// of one size. One group of all if the manifest names none.
  std::vector<std::vector<int32_t>> groups;
  std::vector<GroupPlace> places; ///< per device.
  std::vector<TableSpec> tables;
  std::vector<ExchangeSpec> exchanges;
  std::vector<ShardSpec> shards;
  std::vector<ProgramSpec> programs;
  std::vector<DeviceBinding> bindings;
  /// Per table: some of its rows are cut by columns.
  std::vector<bool> columnSplitTables;

  const TableSpec &tableOf(const ShardSpec &shard) const {
    return tables[shard.table];
  }
  /// True if the owners of the shard's rows must exchange gradient norms. One
  /// shard cut by columns decides it for all shards of its table, also for
  /// those that hold whole rows: the exchange is one per table.
  bool needsNormExchange(const ShardSpec &shard) const;
};

/// Reads and checks a manifest. Throws a RuntimeError that names the place in
/// the file (`$.shards[3].rows`), what is expected and what was found.
/// Unknown fields are ignored; every field the runtime uses is required, but
/// for `wire_type` and `groups`.
Manifest parseManifest(const std::string &text);

/// The second half of parseManifest: checks that hold between the parts.
void checkManifest(const Manifest &manifest);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_ARTIFACT_MANIFEST_H
