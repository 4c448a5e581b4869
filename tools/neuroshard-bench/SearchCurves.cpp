//===- SearchCurves.cpp - Curves of cost and time for plots ---------------===//

#include "SearchCurves.h"

#include "SearchTasks.h"

#include "neuroshard/Serialization/Json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace neuroshard {

namespace {

using Json = nlohmann::ordered_json;

struct Curve {
  const char *name;
  const char *workload;
  const char *topology;
};

constexpr Curve kCurves[] = {
    {"MLPerf DLRM-v2, 8 x H200", "mlperf_dlrm_v2", "8xH200"},
    {"311 tables, 16 x H200", "synthetic_medium", "16xH200"},
    {"2002 tables, 256 x H200", "synthetic_colossal", "256xH200@192GiB"},
};
constexpr double kFirstDeadline = 0.005;

ShardingProblem problemOf(const SearchBenchOptions &bench, const Curve &curve) {
  ShardingProblem problem =
      mustRead(bench.source + "/workloads/" + curve.workload + ".json");
  problem.topology = *parseTopology(curve.topology);
  return problem;
}

/// Searches with deadlines that double until the search ends by itself.
Json costOverTime(const SearchBenchOptions &bench, const Curve &curve) {
  ShardingProblem problem = problemOf(bench, curve);
  std::unique_ptr<CostModel> model = mustMake("roofline", problem.topology);
  Json points = Json::array();
  for (double deadline = kFirstDeadline; deadline < 600; deadline *= 2) {
    SearchOptions options;
    options.threads = bench.threads;
    options.deadlineSeconds = deadline;
    TimedSearch timed = timedSearch(problem, *model, options);
    if (!timed.result)
      break;
    points.push_back({{"deadline_s", deadline},
                      {"seconds", timed.seconds},
                      {"cost_ms", timed.result->breakdown.costMs}});
    if (timed.result->stopReason.find("deadline") == std::string::npos)
      break;
  }
  return points;
}

Json costByAlgorithm(const SearchBenchOptions &bench, const Curve &curve) {
  ShardingProblem problem = problemOf(bench, curve);
  std::unique_ptr<CostModel> model = mustMake("roofline", problem.topology);
  Json costs;
  for (Algorithm algorithm : allAlgorithms()) {
    SearchOptions options;
    options.algorithm = algorithm;
    options.policy = bench.policy.get();
    options.threads = bench.threads;
    options.deadlineSeconds = 60;
    auto result = search(problem, *model, options);
    std::string name(toString(algorithm));
    costs[name] = result ? Json(result->breakdown.costMs) : Json();
    if (result && algorithm == Algorithm::Default)
      costs["lower bound"] = result->lowerBoundMs;
  }
  return costs;
}

/// Seconds of the default search on generated tasks.
Json timeBySize(const SearchBenchOptions &bench) {
  Json points = Json::array();
  for (int devices : {4, 16, 64, 256})
    for (int tables : {25, 100, 400, 1600}) {
      if (tables * devices > 1600 * 64)
        continue;
      TaskSettings settings;
      settings.minTables = settings.maxTables = tables;
      settings.minDevices = settings.maxDevices = devices;
      ShardingProblem problem = randomTask(settings, 1);
      std::unique_ptr<CostModel> model = mustMake("roofline", problem.topology);
      SearchOptions options;
      options.threads = bench.threads;
      TimedSearch timed = timedSearch(problem, *model, options);
      points.push_back({{"tables", tables},
                        {"devices", devices},
                        {"seconds", timed.seconds},
                        {"cpu_seconds", timed.cpuSeconds},
                        {"planned", timed.result.has_value()}});
    }
  return points;
}

} // namespace

Expected<void> writeCurves(const SearchBenchOptions &bench,
                           const std::string &path) {
  Json json;
  json["threads"] = bench.threads;
  for (const Curve &curve : kCurves) {
    bool large = std::string(curve.topology).find("256") != std::string::npos;
    if (large && bench.quick)
      continue;
    json["cost_over_time"][curve.name] = costOverTime(bench, curve);
    json["cost_by_algorithm"][curve.name] = costByAlgorithm(bench, curve);
  }
  json["time_by_size"] = timeBySize(bench);
  return writeFile(path, json.dump(1) + "\n");
}

} // namespace neuroshard
