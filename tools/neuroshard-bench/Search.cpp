//===- Search.cpp - The command `neuroshard-bench search` -----------------===//

#include "Bench.h"
#include "SearchCurves.h"
#include "SearchReport.h"

#include "neuroshard/CostModel/NeuralPolicy.h"
#include "neuroshard/Planner/SearchOptionTable.h"
#include "neuroshard/Serialization/Json.h"

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <stdexcept>

namespace neuroshard {

void SearchReport::heading(const std::string &text) {
  std::printf("\n## %s\n\n", text.c_str());
}

void SearchReport::line(const std::string &text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void SearchReport::figure(const std::string &what, const std::string &value,
                          const std::string &aim, bool reached) {
  misses += !reached;
  line("| " + what + " | " + value + " | " + aim + " | " +
       (reached ? "pass" : "**fail**") + " |");
}

std::string format(const char *text, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(buffer, sizeof buffer, text, arguments);
  va_end(arguments);
  return buffer;
}

TimedSearch timedSearch(const ShardingProblem &problem, const CostModel &model,
                        const SearchOptions &options, int repeats) {
  TimedSearch timed;
  for (int i = 0; i < repeats; ++i) {
    auto begin = std::chrono::steady_clock::now();
    std::clock_t cpuBegin = std::clock();
    timed.result = search(problem, model, options);
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    double cpu = static_cast<double>(std::clock() - cpuBegin) / CLOCKS_PER_SEC;
    timed.seconds = i ? std::min(timed.seconds, seconds) : seconds;
    timed.cpuSeconds = i ? std::min(timed.cpuSeconds, cpu) : cpu;
  }
  return timed;
}

[[noreturn]] static void fail(const Diagnostics &errors) {
  throw std::runtime_error(toString(errors));
}

ShardingProblem mustRead(const std::string &path) {
  Expected<ShardingProblem> problem = readWorkload(path);
  if (!problem)
    fail(problem.error());
  return *std::move(problem);
}

std::unique_ptr<CostModel> mustMake(const std::string &name,
                                    const Topology &topology) {
  Expected<std::unique_ptr<CostModel>> model = makeCostModel(name, topology);
  if (!model)
    fail(model.error());
  return *std::move(model);
}

std::unique_ptr<CostModel> mustMakeFor(const std::string &name,
                                       ShardingProblem &problem) {
  Topology &topology = problem.topology;
  if (name == kMeasured)
    topology = *parseTopology(
        format("%zux%s@%lldB", topology.devices.size(), kCpuClass.data(),
               static_cast<long long>(topology.devices.front().memoryBytes)));
  return mustMake(name, topology);
}

static Expected<void> runSearchBenchmark(SearchBenchOptions &options) {
  auto policy = readPlacementPolicy(options.policyFile);
  if (!policy)
    return tl::unexpected(policy.error());
  options.policy = std::move(*policy);
  if (!options.curves.empty())
    return writeCurves(options, options.curves);
  SearchReport report;
  reportSpeed(options, report);
  reportReferenceTasks(options, report);
  reportGenerated(options, report);
  reportFeasibility(options, report);
  reportDrift(options, report);
  reportBound(options, report);
  reportRefusals(options, report);
  std::string missed = format("%d figures miss their aim", report.missed());
  report.line("\n" + missed + ".");
  if (report.missed())
    return failure("search", missed);
  return {};
}

void addSearchBenchmark(CommandLine &line) {
  auto options = std::make_shared<SearchBenchOptions>();
  Command command = line.addCommand(
      "search",
      "Speed of the searches and quality of their plans, as Markdown; "
      "exit code 1 when a figure misses its aim");
  command.add("--source", options->source,
              "the source tree, for workloads and reference tasks");
  const SearchOption &policy = searchOption("policy");
  command.add("--" + policy.flag, options->policyFile,
              std::string(policy.help));
  const SearchOption &threads = searchOption("threads");
  command.add("--" + threads.flag, options->threads, std::string(threads.help))
      .range(static_cast<int>(threads.low), static_cast<int>(threads.high));
  command.addFlag("--quick", options->quick, "leave out what takes minutes");
  command
      .add("--curves", options->curves,
           "instead: write data for plot_search.py to this file")
      .output("file");
  command.action([options] { return runSearchBenchmark(*options); });
}

} // namespace neuroshard
