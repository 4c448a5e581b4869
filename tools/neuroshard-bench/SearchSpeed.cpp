//===- SearchSpeed.cpp - Time and memory of searches ----------------------===//

#include "SearchReport.h"

#include <algorithm>
#include <sys/resource.h>
#include <vector>

namespace neuroshard {

namespace {

struct SpeedCase {
  const char *workload;
  const char *topology;
  double aimSeconds;
  bool slow;
};

constexpr SpeedCase kCases[] = {
    {"mlperf_dlrm_v2", "8xH200", 0.1, false},
    {"mlperf_dlrm_v2", "8xA100-40GB", 0.1, false},
    {"synthetic_medium", "16xH200", 1, false},
    {"synthetic_colossal", "256xH200@192GiB", 60, true},
    {"synthetic_colossal", "512xH200@192GiB", 60, true},
};
constexpr double kMaxGiB = 2;
constexpr double kPublishedAimMs = 4.1;

double peakGiB() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

void reportDefault(const SearchBenchOptions &options, SearchReport &report) {
  for (const SpeedCase &one : kCases) {
    if (one.slow && options.quick)
      continue;
    ShardingProblem problem =
        mustRead(options.source + "/workloads/" + one.workload + ".json");
    problem.topology = *parseTopology(one.topology);
    std::unique_ptr<CostModel> model = mustMake("roofline", problem.topology);
    SearchOptions search;
    search.threads = options.threads;
    TimedSearch timed =
        timedSearch(problem, *model, search, one.aimSeconds < 1 ? 5 : 1);
    std::string what = format("%s on %s (%zu tables), roofline", one.workload,
                              one.topology, problem.tables.size());
    if (!timed.result) {
      report.figure(what, "no plan", "a plan", false);
      continue;
    }
    report.figure(what,
                  format("%.3f s (CPU %.3f s), %.4f ms, %zu shards, %.2f GiB",
                         timed.seconds, timed.cpuSeconds,
                         timed.result->breakdown.costMs,
                         timed.result->plan.shards.size(), peakGiB()),
                  format("%g s, %g GiB", one.aimSeconds, kMaxGiB),
                  timed.seconds <= one.aimSeconds && peakGiB() <= kMaxGiB);
  }
}

void reportPublished(const SearchBenchOptions &options, const std::string &name,
                     SearchReport &report) {
  std::vector<double> times, cpuTimes;
  for (int i = 0; i < 24; ++i) {
    ShardingProblem problem = mustRead(format(
        "%s/test/reference_search/task_%02d.json", options.source.c_str(), i));
    if (problem.topology.deviceCount() != 4)
      continue;
    std::unique_ptr<CostModel> model = mustMakeFor(name, problem);
    SearchOptions search;
    search.algorithm = Algorithm::Published;
    search.objective.kind = ObjectiveKind::Published;
    search.threads = options.threads;
    TimedSearch timed = timedSearch(problem, *model, search, 5);
    times.push_back(1e3 * timed.seconds);
    cpuTimes.push_back(1e3 * timed.cpuSeconds);
  }
  std::sort(times.begin(), times.end());
  std::sort(cpuTimes.begin(), cpuTimes.end());
  double median = times[times.size() / 2];
  report.figure("published search, 4-device reference tasks, " +
                    std::string(name == kMeasured ? "neural" : "closed form"),
                format("median %.2f ms (CPU %.2f ms), largest %.2f ms", median,
                       cpuTimes[cpuTimes.size() / 2], times.back()),
                format("median %g ms", kPublishedAimMs),
                median <= kPublishedAimMs);
}

} // namespace

void reportSpeed(const SearchBenchOptions &options, SearchReport &report) {
  report.heading("Speed");
  report.line("| search | found | aim | |\n|---|---|---|---|");
  reportPublished(options, "reference", report);
  reportPublished(options, kMeasured, report);
  reportDefault(options, report);
}

} // namespace neuroshard
