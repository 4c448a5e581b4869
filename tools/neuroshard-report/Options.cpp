//===- Options.cpp - Command line of neuroshard-report --------------------===//

#include "Options.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <span>

using namespace neuroshard;

namespace {

/// An option that takes the name of an enumerator.
template <typename Enum>
void addNamed(CLI::App &app, const char *flag, const char *what, Enum &out,
              std::span<const Enum> values,
              std::optional<Enum> (*parse)(std::string_view)) {
  std::vector<std::string> names;
  for (Enum value : values)
    names.emplace_back(toString(value));
  app.add_option_function<std::string>(
         flag, [&out, parse](const std::string &name) { out = *parse(name); },
         what)
      ->check(CLI::IsMember(names));
}

/// At least 0, and a number.
std::string wantCount(std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && *end == 0 && std::isfinite(value) && value >= 0)
    return {};
  return "expected a number of at least 0, got: " + text;
}

void addProblem(CLI::App &app, ReportOptions &options) {
  app.add_option("workload", options.workload, "workload JSON")->required();
  app.add_option("plan", options.plan, "plan JSON; without it one is made");
  app.add_option("--topology", options.topology,
                 "devices instead of the workload's, such as 8xH200");
  app.add_option("--optimizer", options.optimizer,
                 "optimizer of all tables instead of the workload's");
  app.add_option("--batch", options.batch,
                 "global batch instead of the workload's");
  app.add_option("--target", options.target,
                 "what runs the plan instead of the workload's: native or "
                 "torchrec-1.9");
  app.add_option("--cost-model", options.costModel,
                 std::string(kCostModelNames));
}

void addSearch(CLI::App &app, ReportOptions &options) {
  static constexpr ObjectiveKind kObjectives[] = {ObjectiveKind::Step,
                                                  ObjectiveKind::Published};
  CLI::Validator count(wantCount, "NUMBER >= 0", "count");
  addNamed(app, "--algorithm", "search for a plan", options.search.algorithm,
           allAlgorithms(), parseAlgorithm);
  addNamed(app, "--objective", "what the plan makes small",
           options.search.objective.kind,
           std::span<const ObjectiveKind>(kObjectives), parseObjectiveKind);
  app.add_option("--dense-bottom-ms", options.search.objective.denseBottomMs,
                 "dense work that needs no embeddings")
      ->check(count);
  app.add_option("--dense-rest-ms", options.search.objective.denseRestMs,
                 "all other dense work")
      ->check(count);
  app.add_option("--pipeline-depth", options.search.objective.pipelineDepth,
                 "batches in flight");
  app.add_option("--deadline", options.search.deadlineSeconds,
                 "seconds after which the best plan so far is taken")
      ->check(count);
  app.add_option("--evaluations", options.search.evaluationBudget,
                 "candidate plans the search may evaluate; 0: by size");
  app.add_option("--seed", options.search.seed, "of random choices");
  app.add_option("--threads", options.search.threads, "0: all");
  app.add_option("--policy", options.policy,
                 "placement policy of algorithm dreamshard instead of the "
                 "shipped one");
  app.add_option("--previous", options.previous,
                 "plan JSON in use: change it only where that pays");
  app.add_option("--horizon-steps", options.horizonSteps,
                 "steps the new plan will be used for, with --previous")
      ->check(count);
}

} // namespace

std::optional<int> neuroshard::parseOptions(int argc, char **argv,
                                            ReportOptions &options) {
  CLI::App app("Plans a workload, or takes a plan, and shows per device what "
               "it holds and costs");
  addProblem(app, options);
  addSearch(app, options);
  app.add_option("--what-if", options.whatIf,
                 "only a table: what plans for these topologies would cost, "
                 "such as 8xH200,16xH200, or 16 of the workload's devices")
      ->delimiter(',');
  app.add_option("-o,--output", options.output, "write the plan to this file");
  app.add_flag("!--no-baselines", options.baselines,
               "leave out the plans of the other algorithms");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  return std::nullopt;
}
