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

/// Links by the name of their level; the innermost is the innermost whatever
/// its name.
static void keepLinks(Topology &made, const Topology &current) {
  auto keep = [](TopologyLevel &level, const TopologyLevel &old) {
    level.bandwidthGBps = old.bandwidthGBps;
    level.latencyUs = old.latencyUs;
  };
  for (TopologyLevel &level : made.levels)
    for (const TopologyLevel &old : current.levels)
      if (level.name == old.name)
        keep(level, old);
  keep(made.levels.back(), current.levels.back());
}

/// Smallest memory of the hosts, for each of them.
static void keepHosts(Topology &made, const Topology &current) {
  auto least = std::min_element(current.hosts.begin(), current.hosts.end(),
                                [](const Host &a, const Host &b) {
                                  return a.memoryBytes < b.memoryBytes;
                                });
  std::fill(made.hosts.begin(), made.hosts.end(), *least);
}

/// `count` devices in nodes of at most `size`, as parseTopology() reads them.
static std::string inNodesOf(int count, int size, const std::string &device) {
  std::string text = "1x";
  for (int rest = count; rest > 0; rest -= size)
    text.append(rest == count ? "" : "+")
        .append(std::to_string(std::min(rest, size)));
  return text.append("x").append(device);
}

/// So many of the devices that the problem has, with its links, in nodes of the
/// size that it has: that of its largest innermost group, or the class's where
/// its devices are all in one smaller group. neuroshard.Topology.with_devices()
/// does the same.
static Expected<Topology> withDevices(const std::string &count,
                                      const Topology &current) {
  if (current.devices.empty())
    return failure("topology", "is missing; write out the one to plan for, "
                               "such as 16xH200");
  const Device &device = current.devices.front();
  for (const Device &other : current.devices)
    if (other.deviceClass != device.deviceClass ||
        other.memoryBytes != device.memoryBytes)
      return failure("topology", "has unequal devices; write out the one to "
                                 "plan for, such as 16xH200");
  std::string kind = device.deviceClass + "@";
  kind += std::to_string(device.memoryBytes);
  Expected<Topology> made = parseTopology(count + "x" + kind);
  if (!made)
    return made;
  if (made->deviceCount() == current.deviceCount())
    return current;
  const std::vector<int> &groups = current.levels.back().groupSizes;
  int largest = *std::max_element(groups.begin(), groups.end());
  if (groups.size() > 1 || largest >= made->levels.back().groupSizes.front())
    made = parseTopology(inNodesOf(made->deviceCount(), largest, kind));
  if (!made)
    return made;
  keepLinks(*made, current);
  keepHosts(*made, current);
  return made;
}

/// A number alone: so many of the devices that the problem has.
static Expected<Topology> topologyOf(const std::string &text,
                                     const Topology &current) {
  if (text.find_first_not_of("0123456789") != std::string::npos)
    return parseTopology(text);
  return withDevices(text, current);
}

static std::string noPlan(const std::string &text, std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ';');
  return text + std::string(text.size() < 20 ? 20 - text.size() : 0, ' ') +
         " no plan: " + reason + "\n";
}

static Expected<std::string> lineFor(const ShardingProblem &problem,
                                     const std::string &text,
                                     const ReportOptions &options) {
  if (Diagnostics wrong = check(problem); !wrong.empty())
    return noPlan(text, toString(wrong));
  auto model = makeCostModel(options.costModel, problem.topology);
  if (!model)
    return tl::unexpected(model.error());
  TerminalProgress progress(text);
  SearchOptions search = options.search;
  search.progress = progress.callback();
  auto result = neuroshard::search(problem, **model, search);
  if (!result)
    return noPlan(text, result.error().message);
  return format("%-20s %8.3f ms   at least %8.3f ms   %5.1f %%   %6zu\n",
                text.c_str(), result->breakdown.costMs, result->lowerBoundMs,
                fullestPercent(problem, result->memory),
                result->plan.shards.size());
}

Expected<void> printWhatIf(const ShardingProblem &problem,
                           const ReportOptions &options, std::ostream &out) {
  std::vector<ShardingProblem> problems;
  for (const std::string &text : options.whatIf) {
    Expected<Topology> topology = topologyOf(text, problem.topology);
    if (!topology)
      return failure("--what-if " + text, toString(topology.error()));
    problems.push_back(problem);
    problems.back().topology = *std::move(topology);
  }
  out << format("%-20s %11s   %20s   %7s   %6s\n", "topology", "a step",
                "any plan", "fullest", "shards");
  for (size_t i = 0; i < problems.size(); ++i) {
    const std::string &text = options.whatIf[i];
    Expected<std::string> line = lineFor(problems[i], text, options);
    if (!line)
      return failure("--what-if " + text, toString(line.error()));
    out << *line << std::flush;
  }
  return {};
}

} // namespace neuroshard
