//===- SearchOracleForms.h - Every form a table may take --------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_SUPPORT_SEARCHORACLEFORMS_H
#define NEUROSHARD_TEST_SUPPORT_SEARCHORACLEFORMS_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>
#include <vector>

namespace neuroshard::oracle {

/// A set of devices.
using Mask = uint32_t;

inline Mask bit(int device) { return Mask(1) << device; }

/// One form of one table.
struct OracleForm {
  /// Bytes of the listed shards per device.
  std::vector<int64_t> bytes;
  /// Is it on every device?
  int64_t everywhere = 0;
  /// A lower bound of further bytes, spread over some of these devices.
  int64_t relaxation = 0;
  Mask relaxedOn = 0;
  /// The devices that hold some of it, if `exactSupport`; else a superset.
  Mask support = 0;
  bool exactSupport = true;
  /// Only if there is no relaxation: the table's shards, not named.
  std::vector<Shard> shards;
};

/// The rules for a table.
struct Rules {
  Mask devices = 0;
  bool kinds[6] = {};
  int64_t minWidth = 1;
  bool inSet = false;
  std::vector<Shard> fixed;

  bool allows(ShardingKind kind) const {
    return kinds[static_cast<size_t>(kind)];
  }
};

/// A problem with the forms of each table. Bytes are those of the backward
/// phase, in which every term is at least as large as in the forward phase.
class Cases {
public:
  explicit Cases(const ShardingProblem &problem);

  const ShardingProblem &problem() const { return source; }
  int devices() const { return source.topology.deviceCount(); }
  const Rules &rules(size_t table) const { return tableRules[table]; }
  /// All forms; none: the table cannot be placed.
  std::vector<OracleForm> forms(size_t table) const;
  /// Of a shard on each device it is on.
  /// `norms`: needsNormExchange() of the form; that of the shard alone without.
  int64_t bytes(size_t table, const Shard &shard, bool norms) const;
  int64_t bytes(size_t table, const Shard &shard) const;
  /// Free bytes of a device without tables.
  int64_t room(int device) const;
  const std::vector<Mask> &innerGroups() const { return groups; }
  /// The whole table as one shard without devices.
  Shard whole(size_t table) const;

private:
  void collectRules();
  OracleForm formOf(size_t table, std::vector<Shard> shards) const;
  void addWhole(size_t table, std::vector<OracleForm> &forms) const;
  void addReplicas(size_t table, std::vector<OracleForm> &forms) const;
  bool addColumns(size_t table, std::vector<OracleForm> &forms) const;
  void addRowBlocks(size_t table, std::vector<OracleForm> &forms) const;
  void addRelaxation(size_t table, std::vector<OracleForm> &forms) const;
  bool addRowSupports(size_t table, Mask on,
                      std::vector<OracleForm> &forms) const;
  void addSupports(size_t table, OracleForm form,
                   std::vector<OracleForm> &forms) const;
  void addRest(size_t table, std::vector<OracleForm> &forms) const;
  bool cutsBothWays(size_t table) const;
  bool restIsCuttable(size_t table) const;
  void addRestForTorchRec(size_t table, std::vector<OracleForm> &forms) const;
  void addColumnsBeside(size_t table, std::vector<OracleForm> &forms) const;
  double leastPerRow(size_t table, int64_t colBegin, int64_t colEnd) const;
  int64_t relaxedBytes(size_t table, int64_t colBegin, int64_t colEnd,
                       bool columns) const;

  ShardingProblem source;
  std::vector<std::vector<int>> features;
  std::vector<Rules> tableRules;
  std::vector<Mask> groups;
};

} // namespace neuroshard::oracle

#endif // NEUROSHARD_TEST_SUPPORT_SEARCHORACLEFORMS_H
