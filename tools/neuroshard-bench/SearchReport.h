//===- SearchReport.h - Report of the search benchmark ----------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_SEARCHREPORT_H
#define NEUROSHARD_TOOLS_BENCH_SEARCHREPORT_H

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Planner/Search.h"

#include <memory>
#include <string>

namespace neuroshard {

struct SearchBenchOptions {
  /// Of the source tree: workloads and test/reference_search are read from it.
  std::string source = ".";
  /// The placement policy's file; empty: the shipped one.
  std::string policyFile;
  std::shared_ptr<const PlacementPolicy> policy;
  int threads = 2;
  /// Leaves out what takes minutes.
  bool quick = false;
  /// Writes the data of the plots here instead of the report; empty: no.
  std::string curves;
};

/// Markdown on standard output; keeps count of figures that miss their aim.
class SearchReport {
public:
  void heading(const std::string &text);
  void line(const std::string &text);
  /// One figure, its aim, and whether it is reached.
  void figure(const std::string &what, const std::string &value,
              const std::string &aim, bool reached);
  int missed() const { return misses; }

private:
  int misses = 0;
};

/// printf to a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *text, ...);

struct TimedSearch {
  tl::expected<SearchResult, PlanningError> result;
  double seconds = 0;
  /// Of all threads.
  double cpuSeconds = 0;
};

/// The same search `repeats` times; the shortest time counts.
TimedSearch timedSearch(const ShardingProblem &problem, const CostModel &model,
                        const SearchOptions &options, int repeats = 1);

/// A file's workload. Throws std::runtime_error if it cannot be read.
ShardingProblem mustRead(const std::string &path);

/// The cost model of that name, and the devices it is for: `auto` stands for
/// the shipped measured models, which know only kCpuClass, so the problem
/// gets as many such devices with as much memory.
inline constexpr const char *kMeasured = "auto";
std::unique_ptr<CostModel> mustMakeFor(const std::string &name,
                                       ShardingProblem &problem);
std::unique_ptr<CostModel> mustMake(const std::string &name,
                                    const Topology &topology);

void reportSpeed(const SearchBenchOptions &options, SearchReport &report);
void reportReferenceTasks(const SearchBenchOptions &options,
                          SearchReport &report);
void reportGenerated(const SearchBenchOptions &options, SearchReport &report);
void reportFeasibility(const SearchBenchOptions &options, SearchReport &report);
/// Snapshots, and small changes of the statistics.
void reportDrift(const SearchBenchOptions &options, SearchReport &report);
/// The lower bound and the default search against solved instances.
void reportBound(const SearchBenchOptions &options, SearchReport &report);
/// Plans and refusals of random problems against the verifier and an oracle.
void reportRefusals(const SearchBenchOptions &options, SearchReport &report);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_BENCH_SEARCHREPORT_H
