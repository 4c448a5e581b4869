//===- SearchQuality.cpp - Costs of plans of all algorithms ---------------===//

#include "SearchReport.h"
#include "SearchTasks.h"

#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace neuroshard {

namespace {

constexpr double kRelative = 1e-9;
/// No setting of the search was chosen with tasks of these seeds in view.
constexpr uint64_t kHeldOut = 7000;

/// Geometric means of cost ratios.
class Gains {
public:
  /// `ours` and `theirs` of one task.
  void add(double ours, double theirs) {
    logs += std::log(ours / theirs);
    worst = std::max(worst, ours / theirs);
    best = std::min(best, ours / theirs);
    ++tasks;
  }
  int count() const { return tasks; }
  /// By how much ours are lower, in percent.
  double meanPercent() const {
    return tasks ? 100 * (1 - std::exp(logs / tasks)) : 0;
  }
  double leastPercent() const { return 100 * (1 - worst); }
  double mostPercent() const { return 100 * (1 - best); }

private:
  double logs = 0;
  double worst = 0;
  double best = 1e300;
  int tasks = 0;
};

SearchOptions optionsFor(const SearchBenchOptions &bench, bool published,
                         Algorithm algorithm) {
  SearchOptions options;
  options.algorithm = algorithm;
  options.policy = bench.policy.get();
  options.threads = bench.threads;
  options.objective.kind =
      published ? ObjectiveKind::Published : ObjectiveKind::Step;
  return options;
}

/// A column per algorithm.
void reportSetting(const SearchBenchOptions &bench, const TaskSettings &setting,
                   const std::string &name, const std::string &modelName,
                   int tasks, SearchReport &report) {
  std::vector<Gains> gains(allAlgorithms().size());
  std::vector<int> missing(allAlgorithms().size());
  for (int seed = 0; seed < tasks; ++seed) {
    ShardingProblem problem =
        randomTask(setting, 1000 + static_cast<uint64_t>(seed));
    std::unique_ptr<CostModel> model = mustMakeFor(modelName, problem);
    bool published = !model->separatesBackward();
    std::optional<double> ours;
    for (size_t a = 0; a < allAlgorithms().size(); ++a) {
      auto result = search(problem, *model,
                           optionsFor(bench, published, allAlgorithms()[a]));
      if (!result) {
        ++missing[a];
        continue;
      }
      if (a == 0)
        ours = result->breakdown.costMs;
      else if (ours)
        gains[a].add(*ours, result->breakdown.costMs);
    }
  }
  std::string row = "| " + name + " | " +
                    (modelName == kMeasured ? "neural" : modelName) + " |";
  row += format(" %d |", missing[0]);
  for (size_t a = 1; a < gains.size(); ++a)
    row += gains[a].count()
               ? format(" %.1f %% (%d) |", gains[a].meanPercent(), missing[a])
               : format(" - (%d) |", missing[a]);
  report.line(row);
}

} // namespace

void reportReferenceTasks(const SearchBenchOptions &options,
                          SearchReport &report) {
  std::string folder = options.source + "/test/reference_search/";
  Expected<std::string> text = readFile(folder + "expected.json");
  nlohmann::json expected = nlohmann::json::parse(
      text ? *text : std::string("[]"), nullptr, /*allow_exceptions=*/false);
  Gains gains, deviation;
  std::vector<double> bounds;
  for (const nlohmann::json &task : expected) {
    ShardingProblem problem =
        mustRead(folder + task["task"].get<std::string>() + ".json");
    std::unique_ptr<CostModel> model = mustMake("reference", problem.topology);
    double reference = task["cost_ms"];
    auto ours =
        search(problem, *model, optionsFor(options, true, Algorithm::Default));
    auto published = search(problem, *model,
                            optionsFor(options, true, Algorithm::Published));
    if (!ours || !published)
      continue;
    gains.add(ours->breakdown.costMs, reference);
    deviation.add(published->breakdown.costMs, reference);
    bounds.push_back(ours->lowerBoundMs / ours->breakdown.costMs);
  }
  std::sort(bounds.begin(), bounds.end());
  report.heading("The 24 reference tasks");
  report.line("| figure | found | aim | |\n|---|---|---|---|");
  double off = std::max(std::abs(deviation.leastPercent()),
                        std::abs(deviation.mostPercent()));
  report.figure(
      "published search against the reference",
      format("%d tasks, off by at most %.1e %%", deviation.count(), off),
      "24 tasks, 1e-7 %", deviation.count() == 24 && off <= 1e-7);
  report.figure(
      "default search below the reference",
      format("%.2f %% in geometric mean, %.2f %% to %.2f %%",
             gains.meanPercent(), gains.leastPercent(), gains.mostPercent()),
      "1 %, never above",
      gains.meanPercent() >= 1 && gains.leastPercent() >= -100 * kRelative);
  if (!bounds.empty())
    report.line(format("\nThe lower bound is %.0f %% of the default search's "
                       "cost in the median.",
                       100 * bounds[bounds.size() / 2]));
}

void reportGenerated(const SearchBenchOptions &options, SearchReport &report) {
  report.heading("Generated tasks");
  report.line("10 to 40 tables on 8 to 16 devices, weights 60 % of the memory, "
              "closed form, objective `published`.\n");
  report.line("| figure | found | aim | |\n|---|---|---|---|");
  Gains gains;
  int unplanned = 0, publishedUnplanned = 0;
  const int tasks = options.quick ? 40 : 100;
  for (int seed = 0; seed < tasks; ++seed) {
    ShardingProblem problem =
        randomTask({}, kHeldOut + static_cast<uint64_t>(seed));
    std::unique_ptr<CostModel> model = mustMake("reference", problem.topology);
    auto ours =
        search(problem, *model, optionsFor(options, true, Algorithm::Default));
    auto theirs = search(problem, *model,
                         optionsFor(options, true, Algorithm::Published));
    unplanned += !ours;
    publishedUnplanned += !theirs;
    if (ours && theirs)
      gains.add(ours->breakdown.costMs, theirs->breakdown.costMs);
  }
  report.figure(
      "default below the published search",
      format("%.2f %% in geometric mean over %d tasks, %.2f %% to %.2f %%",
             gains.meanPercent(), gains.count(), gains.leastPercent(),
             gains.mostPercent()),
      "9 %", gains.meanPercent() >= 9);
  report.figure("tasks without a plan",
                format("default %d, published %d of %d", unplanned,
                       publishedUnplanned, tasks),
                "default 0", unplanned == 0);

  report.line(
      "\nHow much lower the default search's cost is in geometric mean, "
      "and in brackets how many tasks the other gives no plan. Neural: the "
      "shipped "
      "models of CPU devices.\n");
  std::string head = "| tasks | cost model | default without a plan |";
  std::string rule = "|---|---|---|";
  for (size_t a = 1; a < allAlgorithms().size(); ++a) {
    head.append(" ").append(toString(allAlgorithms()[a])).append(" |");
    rule += "---|";
  }
  report.line(head + "\n" + rule);
  struct Scale {
    int minTables, maxTables, devices, tasks;
  };
  std::vector<Scale> scales = {
      {10, 30, 4, 10}, {20, 40, 8, 10}, {40, 80, 16, 5}};
  if (!options.quick)
    scales.push_back({600, 600, 256, 1});
  const std::vector<std::string> models = {"reference", "roofline", kMeasured};
  for (const Scale &scale : scales)
    for (auto [fill, spread, what] :
         {std::tuple(0.3, 0.95, "loose"), std::tuple(0.9, 0.95, "tight"),
          std::tuple(0.6, 1.8, "skewed poolings")})
      for (const std::string &model : models)
        reportSetting(options,
                      {scale.minTables, scale.maxTables, scale.devices,
                       scale.devices, fill, spread},
                      format("%d devices, %s", scale.devices, what), model,
                      scale.tasks, report);
}

void reportFeasibility(const SearchBenchOptions &options,
                       SearchReport &report) {
  report.heading("Feasibility");
  report.line("Tasks made from a valid plan that fills the memory so far.\n");
  report.line("| figure | found | aim | |\n|---|---|---|---|");
  const int tasks = options.quick ? 50 : 200;
  for (int percent : {60, 80, 95}) {
    int planned = 0;
    for (int seed = 0; seed < tasks; ++seed) {
      KnownTask task =
          taskFromPlan(percent / 100.0, static_cast<uint64_t>(seed));
      std::unique_ptr<CostModel> model =
          mustMake("roofline", task.problem.topology);
      SearchOptions search = optionsFor(options, false, Algorithm::Default);
      search.evaluationBudget = 200;
      auto result = neuroshard::search(task.problem, *model, search);
      planned += result && verify(result->plan, task.problem).empty();
    }
    report.figure(format("tasks at %d %% of memory", percent),
                  format("%d of %d planned", planned, tasks), "all",
                  planned == tasks);
  }
}

} // namespace neuroshard
