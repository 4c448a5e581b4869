//===- SearchBound.cpp - Lower bounds against solved instances ------------===//

#include "SearchReport.h"
#include "SolvedInstances.h"

#include <algorithm>
#include <vector>

namespace neuroshard {

void reportBound(const SearchBenchOptions &bench, SearchReport &report) {
  report.heading("Solved instances");
  report.line("200 random instances (at most 6 tables of dim 4 to 16 on 2 or 3 "
              "devices, whole or cut by columns), solved by trying every "
              "plan; half of them the closed form `reference`, half the "
              "roofline.\n");
  report.line("| figure | found | aim | |\n|---|---|---|---|");
  std::vector<double> bounds, costs;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ShardingProblem problem = solvableInstance(seed, /*columnsOnly=*/true);
    bool reference = seed % 2 == 0;
    std::unique_ptr<CostModel> model =
        mustMake(reference ? "reference" : "roofline", problem.topology);
    SearchOptions options;
    options.threads = bench.threads;
    if (reference)
      options.objective.kind = ObjectiveKind::Published;
    double optimum = optimumMs(problem, *model, options.objective);
    auto found = search(problem, *model, options);
    costs.push_back(found ? found->breakdown.costMs / optimum : 1e300);
    bounds.push_back(found ? found->lowerBoundMs / optimum : 0);
  }
  std::sort(bounds.begin(), bounds.end());
  std::sort(costs.begin(), costs.end());
  double median = 100 * bounds[bounds.size() / 2];
  report.figure(
      "lower bound, of the optimum",
      format("median %.1f %%, largest %.1f %%", median, 100 * bounds.back()),
      "median 90 %, never above", median >= 90 && bounds.back() <= 1);
  report.figure("default search above the optimum",
                format("at most %.2f %%", 100 * (costs.back() - 1)),
                "at most 1 %", costs.back() <= 1.01);
}

} // namespace neuroshard
