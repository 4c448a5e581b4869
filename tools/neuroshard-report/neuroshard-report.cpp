//===- neuroshard-report.cpp - Shows what a plan does to a workload -------===//
//
// Reads a workload and a plan as JSON, or plans itself, checks the plan with
// the independent verifier, and prints it per device and against the
// baselines.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Report.h"
#include "WhatIf.h"

#include "neuroshard/CostModel/PlacementPolicy.h"
#include "neuroshard/Planner/TerminalProgress.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Files.h"
#include "neuroshard/Serialization/Json.h"

#include <filesystem>
#include <iostream>

using namespace neuroshard;

namespace {

Expected<ShardingProblem> readProblem(const ReportOptions &options) {
  Expected<ShardingProblem> problem = readWorkload(options.workload);
  if (!problem)
    return problem;
  if (!options.topology.empty()) {
    Expected<Topology> topology = parseTopology(options.topology);
    if (!topology)
      return tl::unexpected(topology.error());
    problem->topology = *topology;
  }
  if (options.batch)
    problem->batch.globalSize = options.batch;
  if (!options.optimizer.empty()) {
    auto kind = parseOptimizerKind(options.optimizer);
    if (!kind)
      return failure("--optimizer", "expected sgd, adagrad, rowwise_adagrad or "
                                    "adam, got: '" +
                                        options.optimizer + "'");
    for (Table &table : problem->tables)
      table.optimizer.kind = *kind;
  }
  if (!options.target.empty()) {
    auto target = parseTarget(options.target);
    if (!target)
      return failure("--target", "expected native or torchrec-1.9, got: '" +
                                     options.target + "'");
    problem->target = *target;
  }
  return problem;
}

/// The plan of the file, or that of a search.
Expected<SearchResult> choosePlan(const ReportOptions &options,
                                  const ShardingProblem &problem,
                                  const CostModel &model) {
  SearchResult given;
  if (!options.plan.empty()) {
    Expected<ShardingPlan> plan = readPlan(options.plan);
    if (!plan)
      return tl::unexpected(plan.error());
    given.plan = *std::move(plan);
    Diagnostics wrong = checkObjective(model, options.search.objective);
    if (wrong.empty())
      wrong = verify(given.plan, problem);
    if (!wrong.empty())
      return tl::unexpected(wrong);
    given.breakdown =
        evaluate(problem, given.plan, model, options.search.objective);
    return given;
  }
  SearchOptions search = options.search;
  if (!options.previous.empty()) {
    Expected<ShardingPlan> previous = readPlan(options.previous);
    if (!previous)
      return tl::unexpected(previous.error());
    search.warmStart = WarmStart{*std::move(previous), options.horizonSteps};
  }
  TerminalProgress progress("planning");
  search.progress = progress.callback();
  auto result = neuroshard::search(problem, model, search);
  if (!result)
    return failure("no plan", result.error().str());
  return *std::move(result);
}

Expected<void> showPlan(const ReportOptions &options,
                        const ShardingProblem &problem) {
  auto model = makeCostModel(options.costModel, problem.topology);
  if (!model)
    return tl::unexpected(model.error());
  Expected<SearchResult> chosen = choosePlan(options, problem, **model);
  if (!chosen)
    return tl::unexpected(chosen.error());
  if (!options.output.empty())
    if (Expected<void> written =
            writeFile(options.output, writePlan(chosen->plan));
        !written)
      return written;
  printDevices(problem, chosen->plan, chosen->breakdown, std::cout);
  std::cout << "cost model: " << (*model)->name() << "\n";
  for (const std::string &remark :
       remarksOnPlan(problem, chosen->plan, **model))
    std::cout << "note: " << remark << "\n";
  printExplanation(*chosen, std::cout);
  if (!options.baselines)
    return {};
  std::cout << "\npredicted time of a step, against the other algorithms\n";
  printBaselines(problem, chosen->plan, **model, options.search, std::cout);
  return {};
}

/// Before the minutes that planning may take.
Expected<void> checkOutput(const ReportOptions &options) {
  if (options.output.empty())
    return {};
  std::error_code ignored;
  for (const std::string &input : {options.workload, options.plan})
    if (std::filesystem::equivalent(options.output, input, ignored))
      return failure(options.output, "is an input; name another file to write");
  return checkWritable(options.output);
}

Expected<void> report(ReportOptions &options) {
  if (Expected<void> writable = checkOutput(options); !writable)
    return writable;
  Expected<ShardingProblem> problem = readProblem(options);
  if (!problem)
    return tl::unexpected(problem.error());
  // Only dreamshard needs it; without the file the others still work.
  auto policy = readPlacementPolicy(options.policy);
  if (policy)
    options.search.policy = policy->get();
  else if (!options.policy.empty() ||
           options.search.algorithm == Algorithm::DreamShard)
    return tl::unexpected(policy.error());
  bool oneTopology = options.whatIf.empty();
  Diagnostics wrong = oneTopology ? check(*problem) : checkWorkload(*problem);
  if (!wrong.empty())
    return tl::unexpected(wrong);
  if (!oneTopology)
    return printWhatIf(*problem, options, std::cout);
  return showPlan(options, *problem);
}

} // namespace

int main(int argc, char **argv) {
  ReportOptions options;
  if (std::optional<int> exitCode = parseOptions(argc, argv, options))
    return *exitCode;
  Expected<void> done = report(options);
  if (done)
    return 0;
  std::cerr << "neuroshard-report: " << toString(done.error()) << "\n";
  return 1;
}
