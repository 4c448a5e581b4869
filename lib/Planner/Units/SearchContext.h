//===- SearchContext.h - A problem and all that searches derive -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_SEARCHCONTEXT_H
#define NEUROSHARD_LIB_PLANNER_UNITS_SEARCHCONTEXT_H

#include "Footprint.h"
#include "TableRules.h"
#include "neuroshard/Planner/Search.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace neuroshard {

class ComputeCache;
class RowDemands;
class SearchThreads;
class UnitStore;

/// Whether the row bands of a table whose column shards exchange norms may
/// differ in being cut by columns.
enum class RowWidths {
  Equal, // all are cut or none
  Free,
};

/// A problem with everything derived from it that does not change during a
/// search.
class SearchContext {
  /// First, since making a context counts as time of the search.
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  /// Only of a problem with snapshots.
  std::optional<const ShardingProblem> summary;

public:
  /// All arguments must outlive the context.
  SearchContext(const ShardingProblem &given, const CostModel &model,
                const SearchOptions &options,
                RowWidths widths = RowWidths::Equal);
  ~SearchContext();

  const Table &table(int index) const {
    return problem.tables[static_cast<size_t>(index)];
  }
  /// `name` must be that of a table.
  int tableIndex(std::string_view name) const { return tableOfName.at(name); }
  const std::vector<int> &featuresOf(int table) const {
    return features[static_cast<size_t>(table)];
  }
  const TableRules &rulesOf(int table) const {
    return rules[static_cast<size_t>(table)];
  }
  /// needsNormExchange() of all shards of the table, of which this is one, told
  /// from this one alone: right for RowWidths::Equal, where given shards of
  /// whole rows beside cut ones count as if they exchanged norms. With
  /// RowWidths::Free shards of whole rows never do.
  bool exchangesNormsOf(int table, const Shard &shard) const {
    const Table &source = this->table(table);
    bool wholeRow = shard.width() == source.dim;
    return rulesOf(table).exactRows &&
           (!wholeRow ||
            (widths == RowWidths::Equal && rulesOf(table).columnsCutBefore &&
             shard.rows() != source.rows));
  }
  /// May a shard of so many rows and columns of the table be cut by columns, or
  /// be made by joining columns? Not where that mixes whole and cut rows, see
  /// exchangesNormsOf().
  bool mayMixWidths(int table, int64_t rows, int64_t width) const {
    const Table &source = this->table(table);
    const TableRules &rule = rulesOf(table);
    return widths == RowWidths::Free || !rule.exactRows ||
           rule.columnsCutBefore || rows == source.rows || width != source.dim;
  }
  const DeviceClass &classOf(int device) const {
    return *usedClasses[classIndexOf(device)];
  }
  /// Index into usedClasses.
  size_t classIndexOf(int device) const {
    return classIndices[static_cast<size_t>(device)];
  }
  int64_t memoryOf(int device) const {
    return problem.topology.devices[static_cast<size_t>(device)].memoryBytes;
  }
  const MemoryTerms &baseOf(int device) const {
    return base[static_cast<size_t>(device)];
  }
  /// What every host holds whatever the plan: maps of dynamic ids.
  int64_t hostBaseOf(size_t host) const { return hostBase[host]; }
  /// What the row caches share on a device that holds the shards of this sum.
  CacheBytes sharedBytesOf(const Footprint &sum) const {
    return sharedByCaches.bytesOf(sum);
  }
  /// With that the peak of the device, and what it takes of its host.
  int64_t peakOf(const Footprint &sum) const {
    return sum.peakBytes() + sharedBytesOf(sum).device;
  }
  int64_t hostBytesOf(const Footprint &sum) const {
    return sum.hostBytes + sharedBytesOf(sum).host;
  }
  /// Row demands of the problem's tables.
  RowDemands *demands() const { return ofProblem.get(); }
  /// Row demands of the tables in a period.
  RowDemands *demandsOf(size_t period) const { return ofPeriods[period].get(); }
  UnitStore &store() const { return *pieces; }
  ComputeCache &computeCache() const { return *computes; }
  SearchThreads &pool() const { return *threads; }
  /// Has the deadline passed, or did the receiver of progress stop the search?
  /// On the thread that called search() this also reports progress.
  bool deadlinePassed() const;
  /// Why deadlinePassed() is true, in words.
  std::string whyStopped() const;
  double seconds() const;
  /// Notes for progress, from any thread: the phase and the shares of the whole
  /// search at which it begins and ends; the share of the phase that is done;
  /// the cost of a plan that was found.
  void beginPhase(const char *phase, double begin, double end) const;
  void noteShare(double shareOfPhase) const;
  void noteCost(double costMs) const;

  /// With snapshots their summary: mean statistics, and memory of the worst
  /// snapshot. It only guides searches.
  const ShardingProblem &problem;
  /// The problem at each of its snapshots, with memory of the worst, and the
  /// weight of each; a plan's cost is the weighted mean over them. Empty
  /// without snapshots.
  std::vector<ShardingProblem> periods;
  std::vector<double> shares;
  const CostModel &model;
  const SearchOptions &options;
  const int deviceCount;
  const RowWidths widths;
  /// The device classes of the topology.
  std::vector<const DeviceClass *> usedClasses;
  std::vector<int> innerGroupOfDevice;

private:
  /// The state that progress reports, and whether its receiver stopped the
  /// search.
  struct Progress;
  void reportProgress() const;

  std::unordered_map<std::string_view, int> tableOfName;
  std::vector<std::vector<int>> features;
  std::vector<TableRules> rules;
  std::vector<size_t> classIndices;
  std::vector<MemoryTerms> base;
  std::vector<int64_t> hostBase;
  SharedByCaches sharedByCaches;
  std::unique_ptr<RowDemands> ofProblem;
  std::vector<std::unique_ptr<RowDemands>> ofPeriods;
  std::unique_ptr<UnitStore> pieces;
  std::unique_ptr<ComputeCache> computes;
  std::unique_ptr<SearchThreads> threads;
  std::unique_ptr<Progress> progress;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_SEARCHCONTEXT_H
