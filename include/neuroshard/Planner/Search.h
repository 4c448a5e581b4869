//===- Search.h - Finding a plan for a problem ------------------*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_SEARCH_H
#define NEUROSHARD_PLANNER_SEARCH_H

#include "neuroshard/Artifact/BufferBytes.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/SearchDefaults.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

class PlacementPolicy;

/// Default: splits for memory and cost, greedy over caps, local search.
/// Published: the paper's beam over column splits. The others place whole
/// tables in descending order of a key on the device with the least of it.
/// DreamShard: whole tables where a trained policy says. TorchRec: what its
/// planner does (enumerate, propose, partition). Threshold: numbers of elements
/// decide which tables are replicated and which cut by columns or rows.
enum class Algorithm {
  Default,
  Published,
  Random,
  Dim,
  Size,
  Lookup,
  SizeLookup,
  DreamShard,
  TorchRec,
  Threshold
};

std::string_view toString(Algorithm algorithm);
std::optional<Algorithm> parseAlgorithm(std::string_view text);
/// Every algorithm, Default first.
std::span<const Algorithm> allAlgorithms();

/// Settings of the published search, in the units of SearchOptions.def, as
/// those below; the defaults are the paper's.
struct PublishedSettings {
  int candidates = search_defaults::candidates;
  int beamWidth = search_defaults::beamWidth;
  int depth = search_defaults::depth;
  int gridPoints = search_defaults::gridPoints;
  double gridBegin = search_defaults::gridBegin;
  double gridEnd = search_defaults::gridEnd;
};

/// A plan in use, which the search changes only where that pays.
struct WarmStart {
  ShardingPlan previous;
  double horizonSteps = search_defaults::horizonSteps;
  double tolerance = search_defaults::tolerance;
};

/// A table that must be migrated.
struct TableMove {
  std::string table;
  /// Weights and optimizer state that come to devices that did not hold them.
  int64_t bytes = 0;
  /// "rows [0, 100) cols [0, 64) from device 1 to 2, ...".
  std::string what;
};

/// The cost of changing from the previous plan, and its gain.
struct Migration {
  /// The cost of the previous plan for today's problem; nothing when it does
  /// not serve it, for the reason given.
  std::optional<double> previousCostMs;
  std::string whyNotPrevious;
  int64_t bytes = 0;
  /// Time of moving the bytes: that of the device that takes longest, over its
  /// slowest link.
  double moveMs = 0;
  /// Largest first.
  std::vector<TableMove> moves;
};

/// The progress of a search.
struct SearchProgress {
  double seconds = 0;
  /// In [0, 1]; an estimate.
  double share = 0;
  double bestCostMs = 0;
  std::string_view phase;
};

/// Names, ranges and meaning of the numbers are in SearchOptions.def.
struct SearchOptions {
  Algorithm algorithm = Algorithm::Default;
  ObjectiveOptions objective;
  /// In place of the batch's wire type, the one that is liked best first;
  /// empty: that one. The plan says which was chosen: chosenWireType().
  std::vector<WireType> wireTypes;
  /// Lower tiers, Dram before Ssd, into which tables are put as far as device
  /// memory does not hold them, for target native. Dram is for GPUs: on CPUs it
  /// has no effect.
  std::vector<Tier> lowerTiers;
  PublishedSettings published;
  /// For DreamShard, which needs it. Must outlive the search.
  const PlacementPolicy *policy = nullptr;
  int policySamples = search_defaults::policySamples;
  uint64_t seed = search_defaults::seed;
  /// The result does not depend on it.
  int threads = search_defaults::threads;
  /// Without it the result depends on nothing but the arguments.
  std::optional<double> deadlineSeconds;
  int64_t evaluationBudget = search_defaults::evaluationBudget;
  std::optional<WarmStart> warmStart;
  /// Called now and then by the thread that called search(), several times a
  /// second. Returning false ends the search as a deadline does.
  std::function<bool(const SearchProgress &)> progress;
};

struct SearchResult {
  ShardingPlan plan;
  CostBreakdown breakdown;
  MemoryReport memory;
  /// planBuffers(); empty unless the target is native.
  std::vector<BufferBytes> buffers;
  /// Never above the cost of the best plan there is; 0: not known.
  double lowerBoundMs = 0;
  /// One sentence per decision, with numbers.
  std::vector<std::string> explanation;
  /// What was tried, with its cost.
  std::vector<std::string> tried;
  std::string stopReason;
  int64_t evaluations = 0;
  double seconds = 0;
  /// With a warm start.
  std::optional<Migration> migration;
};

/// The kind of limit that leaves a problem without a plan.
enum class Limit {
  BadInput,
  DeviceMemory,
  HostMemory,
  Disk,
  Constraint,
  Target,
  Algorithm
};

std::string_view toString(Limit limit);

/// Why there is no plan.
struct PlanningError {
  Limit limit = Limit::BadInput;
  /// The binding limit in one sentence, with numbers.
  std::string message;
  /// Evidence: largest tables, devices, each error of the input.
  std::vector<std::string> details;
  /// What to change.
  std::string advice;

  /// All of it, several lines.
  std::string str() const;
};

/// Finds a plan. Every plan returned passes verify(). Never crashes on bad
/// input: check() runs first.
tl::expected<SearchResult, PlanningError> search(const ShardingProblem &problem,
                                                 const CostModel &model,
                                                 const SearchOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_SEARCH_H
