//===- neuroshard-report.cpp - Shows what a plan does to a workload -------===//
//
// Reads a workload and a plan as JSON, or plans itself, checks the plan with
// the independent verifier, and prints it per device and against the
// baselines.
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Planner/Json.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace neuroshard;

namespace {

struct Settings {
  std::string workload, plan, topology, optimizer;
  std::string costModel = std::string(kDefaultCostModel);
  int64_t batch = 0;
};

Expected<ShardingProblem> readProblem(const Settings &settings) {
  Expected<ShardingProblem> problem = readWorkload(settings.workload);
  if (!problem)
    return problem;
  if (!settings.topology.empty()) {
    Expected<Topology> topology = parseTopology(settings.topology);
    if (!topology)
      return tl::unexpected(topology.error());
    problem->topology = *topology;
  }
  if (settings.batch)
    problem->batch.globalSize = settings.batch;
  if (!settings.optimizer.empty()) {
    auto kind = parseOptimizerKind(settings.optimizer);
    if (!kind)
      return failure("--optimizer", "expected sgd, adagrad, rowwise_adagrad or "
                                    "adam, got: '" +
                                        settings.optimizer + "'");
    for (Table &table : problem->tables)
      table.optimizer.kind = *kind;
  }
  Diagnostics wrong = check(*problem);
  if (!wrong.empty())
    return tl::unexpected(wrong);
  return problem;
}

/// The plan of the file, or of the default search.
Expected<ShardingPlan> choosePlan(const Settings &settings,
                                  const ShardingProblem &problem,
                                  const CostModel &model) {
  if (!settings.plan.empty())
    return readPlan(settings.plan);
  auto result = search(problem, model, {});
  if (!result)
    return failure("no plan", result.error().str());
  return result->plan;
}

Expected<void> report(const Settings &settings) {
  Expected<ShardingProblem> problem = readProblem(settings);
  if (!problem)
    return tl::unexpected(problem.error());
  auto model = makeCostModel(settings.costModel, problem->topology);
  if (!model)
    return tl::unexpected(model.error());
  Expected<ShardingPlan> plan = choosePlan(settings, *problem, **model);
  if (!plan)
    return tl::unexpected(plan.error());
  ObjectiveOptions objective;
  Diagnostics wrong = checkObjective(**model, objective);
  if (wrong.empty())
    wrong = verify(*plan, *problem);
  if (!wrong.empty())
    return tl::unexpected(wrong);

  CostBreakdown cost = evaluate(*problem, *plan, **model, objective);
  printDevices(*problem, *plan, cost, std::cout);
  std::cout << "cost model: " << (*model)->name() << "\n";
  for (const std::string &remark : remarksOnPlan(*problem, *plan, **model))
    std::cout << "note: " << remark << "\n";
  std::cout << "\npredicted time of a step, against the baselines\n";
  printBaselines(*problem, *plan, **model, objective, std::cout);
  return {};
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  CLI::App app("Shows per device what a plan holds and costs");
  app.add_option("workload", settings.workload, "workload JSON")->required();
  app.add_option("plan", settings.plan, "plan JSON; without it one is made");
  app.add_option("--topology", settings.topology,
                 "devices instead of the workload's, such as 8xH200");
  app.add_option("--optimizer", settings.optimizer,
                 "optimizer of all tables instead of the workload's");
  app.add_option("--batch", settings.batch,
                 "global batch instead of the workload's");
  app.add_option("--cost-model", settings.costModel,
                 std::string(kCostModelNames));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  Expected<void> done = report(settings);
  if (done)
    return 0;
  std::cerr << "neuroshard-report: " << toString(done.error()) << "\n";
  return 1;
}
