//===- Options.h - Command line of neuroshard-report ------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_REPORT_OPTIONS_H
#define NEUROSHARD_TOOLS_REPORT_OPTIONS_H

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Planner/Search.h"

#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

struct ReportOptions {
  std::string workload, plan;
  /// Instead of what the workload says; empty or 0: as there.
  std::string topology, optimizer, target;
  int64_t batch = 0;
  std::string costModel = std::string(kDefaultCostModel);
  /// For algorithm dreamshard; empty: the shipped one.
  std::string policy;
  std::string previous;
  double horizonSteps = 1e5;
  /// Topologies to plan for, one after the other.
  std::vector<std::string> whatIf;
  std::string output;
  bool baselines = true;
  SearchOptions search;
};

/// Fills `options`. An exit code if the program is to end: 0 after help, 1
/// after an error, which has been printed.
std::optional<int> parseOptions(int argc, char **argv, ReportOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REPORT_OPTIONS_H
