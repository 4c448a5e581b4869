//===- WhatIf.cpp - What other topologies would cost ----------------------===//

#include "WhatIf.h"

#include "Report.h"
#include "neuroshard/Planner/TerminalProgress.h"

#include <algorithm>

namespace neuroshard {

/// The fullest device, in percent of its memory.
static double fullestPercent(const ShardingProblem &problem,
                             const MemoryReport &memory) {
  double fullest = 0;
  for (size_t i = 0; i < memory.devices.size(); ++i)
    fullest = std::max(
        fullest,
        100.0 * static_cast<double>(memory.devices[i].peakBytes()) /
            static_cast<double>(problem.topology.devices[i].memoryBytes));
  return fullest;
}

/// A number alone: so many of the devices that the problem has.
static Expected<Topology> topologyOf(const std::string &text,
                                     const Topology &current) {
  if (text.find_first_not_of("0123456789") != std::string::npos)
    return parseTopology(text);
  for (const Device &device : current.devices)
    if (device.deviceClass != current.devices.front().deviceClass ||
        device.memoryBytes != current.devices.front().memoryBytes)
      return failure("topology", "has unequal devices; write out the one to "
                                 "plan for, such as 16xH200");
  if (current.devices.empty())
    return failure("topology", "is missing; write out the one to plan for, "
                               "such as 16xH200");
  const Device &device = current.devices.front();
  return parseTopology(text + "x" + device.deviceClass + "@" +
                       std::to_string(device.memoryBytes));
}

static Expected<std::string> lineFor(ShardingProblem problem,
                                     const std::string &text,
                                     const ReportOptions &options) {
  Expected<Topology> topology = topologyOf(text, problem.topology);
  if (!topology)
    return tl::unexpected(topology.error());
  problem.topology = *std::move(topology);
  if (Diagnostics wrong = check(problem); !wrong.empty())
    return tl::unexpected(wrong);
  auto model = makeCostModel(options.costModel, problem.topology);
  if (!model)
    return tl::unexpected(model.error());
  TerminalProgress progress(text);
  SearchOptions search = options.search;
  search.progress = progress.callback();
  auto result = neuroshard::search(problem, **model, search);
  if (!result)
    return format("%-20s no plan: %s\n", text.c_str(),
                  result.error().message.c_str());
  return format("%-20s %8.3f ms   at least %8.3f ms   %5.1f %%   %6zu\n",
                text.c_str(), result->breakdown.costMs, result->lowerBoundMs,
                fullestPercent(problem, result->memory),
                result->plan.shards.size());
}

Expected<void> printWhatIf(const ShardingProblem &problem,
                           const ReportOptions &options, std::ostream &out) {
  out << format("%-20s %11s   %20s   %7s   %6s\n", "topology", "a step",
                "any plan", "fullest", "shards");
  for (const std::string &text : options.whatIf) {
    Expected<std::string> line = lineFor(problem, text, options);
    if (!line)
      return failure("--what-if " + text, toString(line.error()));
    out << *line << std::flush;
  }
  return {};
}

} // namespace neuroshard
