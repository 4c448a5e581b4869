//===- SearchContext.h - A problem and all that searches derive -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_SEARCHCONTEXT_H
#define NEUROSHARD_LIB_PLANNER_UNITS_SEARCHCONTEXT_H

#include "neuroshard/Planner/Search.h"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace neuroshard {

class ComputeCache;
class SearchThreads;
class UnitStore;

/// What the constraints say about one table.
struct TableRules {
  /// By ShardingKind.
  std::array<bool, 6> allowed = {true, true, true, true, true, true};
  int64_t minWidth = 1;
  /// Per device; empty: all.
  std::vector<bool> devices;
  /// Sets of Constraints::separate the table belongs to.
  std::vector<int> separateSets;
  /// Tables that must be where this one is; the first of them, or -1. Sets
  /// that share a table are one.
  int coLocateLeader = -1;
  /// Has shards written by hand.
  bool fixed = false;
  /// Has a list of allowed kinds.
  bool kindsListed = false;
  /// Its optimizer's state per row is exact on column shards.
  bool exactRows = false;
  /// Shards written by hand, or those of the plan before, cut it by columns.
  bool columnsCutBefore = false;

  bool allows(ShardingKind kind) const {
    return allowed[static_cast<size_t>(kind)];
  }
  bool allowsDevice(int device) const {
    return devices.empty() || devices[static_cast<size_t>(device)];
  }
};

/// A problem with everything derived from it that does not change during a
/// search.
class SearchContext {
  /// Of a problem with snapshots.
  std::optional<const ShardingProblem> summary;

public:
  /// All arguments must outlive the context.
  SearchContext(const ShardingProblem &given, const CostModel &model,
                const SearchOptions &options);
  ~SearchContext();

  const Table &table(int index) const {
    return problem.tables[static_cast<size_t>(index)];
  }
  /// Of a name that is known to exist.
  int tableIndex(std::string_view name) const { return tableOfName.at(name); }
  const std::vector<int> &featuresOf(int table) const {
    return features[static_cast<size_t>(table)];
  }
  const TableRules &rulesOf(int table) const {
    return rules[static_cast<size_t>(table)];
  }
  /// exchangesNorms() of all shards of the table, of which this is one. No
  /// search cuts some rows of such a table by columns and leaves others whole,
  /// unless somebody did so before; then whole rows count as if they exchanged
  /// norms, too.
  bool exchangesNormsOf(int table, const Shard &shard) const {
    const Table &source = this->table(table);
    bool wholeRow = shard.width() == source.dim;
    return rulesOf(table).exactRows &&
           (!wholeRow ||
            (rulesOf(table).columnsCutBefore && shard.rows() != source.rows));
  }
  /// May a piece of the table of so many rows and columns be cut by columns,
  /// or arise when columns are joined? Not if others could have to exchange
  /// norms with it, which it would not know.
  bool mayMixWidths(int table, int64_t rows, int64_t width) const {
    const Table &source = this->table(table);
    const TableRules &rule = rulesOf(table);
    return !rule.exactRows || rule.columnsCutBefore || rows == source.rows ||
           width != source.dim;
  }
  const DeviceClass &classOf(int device) const {
    return *usedClasses[classIndexOf(device)];
  }
  /// Into usedClasses.
  size_t classIndexOf(int device) const {
    return classIndices[static_cast<size_t>(device)];
  }
  int64_t memoryOf(int device) const {
    return problem.topology.devices[static_cast<size_t>(device)].memoryBytes;
  }
  const MemoryTerms &baseOf(int device) const {
    return base[static_cast<size_t>(device)];
  }
  /// Pieces made so far.
  UnitStore &store() const { return *pieces; }
  ComputeCache &computeCache() const { return *computes; }
  SearchThreads &pool() const { return *threads; }
  /// Is the time over, or was the search told to stop? On the thread that
  /// called search() this also reports progress.
  bool deadlinePassed() const;
  /// In words, once it has passed.
  std::string whyStopped() const;
  double seconds() const;
  /// For progress: what goes on, from which to which share of the whole; how
  /// far that is; a plan's cost. Any thread.
  void beginPhase(const char *phase, double begin, double end) const;
  void noteShare(double shareOfPhase) const;
  void noteCost(double costMs) const;

  /// With snapshots their summary: the statistics in the mean and memory at
  /// the worst. Enough for what only guides a search.
  const ShardingProblem &problem;
  /// The problem at each of its snapshots, but with memory at the worst, and
  /// how much each counts; what a plan costs is the mean over them. Empty
  /// without snapshots.
  std::vector<ShardingProblem> periods;
  std::vector<double> shares;
  const CostModel &model;
  const SearchOptions &options;
  const int deviceCount;
  /// The classes that occur in the topology.
  std::vector<const DeviceClass *> usedClasses;
  std::vector<int> innerGroupOfDevice;

private:
  /// What progress tells, and whether its receiver wants the search to end.
  struct Progress;
  void reportProgress() const;
  void collectRules();
  void restrictKinds(int table, TableRules &rule) const;
  void restrictForTorchRec(int table, TableRules &rule) const;
  void collectCoLocation();

  std::unordered_map<std::string_view, int> tableOfName;
  std::vector<std::vector<int>> features;
  std::vector<TableRules> rules;
  std::vector<size_t> classIndices;
  std::vector<MemoryTerms> base;
  std::unique_ptr<UnitStore> pieces;
  std::unique_ptr<ComputeCache> computes;
  std::unique_ptr<SearchThreads> threads;
  std::unique_ptr<Progress> progress;
  std::chrono::steady_clock::time_point start;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_SEARCHCONTEXT_H
