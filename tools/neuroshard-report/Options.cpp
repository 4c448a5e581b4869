//===- Options.cpp - Command line of neuroshard-report --------------------===//

#include "Options.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <limits>
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

/// A whole number in decimal digits; others would wrap or be cut off.
CLI::Validator wholeNumber(uint64_t low, uint64_t high) {
  std::string range = "in [" + std::to_string(low) + ", ";
  range += std::to_string(high) + "]";
  return CLI::Validator(
      [=](std::string &text) -> std::string {
        uint64_t value = 0;
        const char *textEnd = text.data() + text.size();
        auto [end, error] = std::from_chars(text.data(), textEnd, value);
        if (error == std::errc() && end == textEnd && value >= low &&
            value <= high)
          return {};
        return "expected a whole number " + range + ", got: " + text;
      },
      range, "whole");
}

/// An empty text would read as an option that was not given.
CLI::Validator notEmpty() {
  return CLI::Validator(
      [](std::string &text) -> std::string {
        return text.empty() ? "expected a text, got an empty one" : "";
      },
      "", "not empty");
}

void addProblem(CLI::App &app, ReportOptions &options) {
  app.add_option("workload", options.workload, "workload JSON")
      ->required()
      ->check(notEmpty());
  app.add_option("plan", options.plan, "plan JSON; without it one is made")
      ->check(notEmpty());
  app.add_option("--topology", options.topology,
                 "devices instead of the workload's, such as 8xH200")
      ->check(notEmpty());
  app.add_option("--optimizer", options.optimizer,
                 "optimizer of all tables instead of the workload's")
      ->check(notEmpty());
  app.add_option("--batch", options.batch,
                 "global batch instead of the workload's")
      ->check(wholeNumber(1, uint64_t(1) << 31));
  app.add_option("--target", options.target,
                 "what runs the plan instead of the workload's: native or "
                 "torchrec-1.9")
      ->check(notEmpty());
  app.add_option("--cost-model", options.costModel,
                 std::string(kCostModelNames))
      ->check(notEmpty());
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
                 "batches in flight")
      ->check(wholeNumber(1, std::numeric_limits<int>::max()));
  app.add_option("--deadline", options.search.deadlineSeconds,
                 "seconds after which the best plan so far is taken")
      ->check(count);
  app.add_option("--evaluations", options.search.evaluationBudget,
                 "candidate plans the search may evaluate; 0: by size")
      ->check(wholeNumber(0, std::numeric_limits<int64_t>::max()));
  app.add_option("--seed", options.search.seed, "of random choices")
      ->check(wholeNumber(0, std::numeric_limits<uint64_t>::max()));
  app.add_option("--threads", options.search.threads, "0: all")
      ->check(wholeNumber(0, 1024));
  app.add_option("--policy", options.policy,
                 "placement policy of algorithm dreamshard instead of the "
                 "shipped one")
      ->check(notEmpty());
  app.add_option("--previous", options.previous,
                 "plan JSON in use: change it only where that pays")
      ->check(notEmpty());
  app.add_option("--horizon-steps", options.horizonSteps,
                 "steps the new plan will be used for, with --previous")
      ->check(count);
}

/// Whatever is given has an effect, or is refused: options that exclude others.
void excludeIdleOptions(CLI::App &app) {
  app.get_option("--horizon-steps")->needs("--previous");
  for (const char *flag : {"--algorithm", "--previous", "--what-if"})
    app.get_option("plan")->excludes(flag);
  for (const char *flag : {"--output", "--previous"})
    app.get_option("--what-if")->excludes(flag);
}

/// Of a search that does not take place. With a plan given, only the baselines
/// search; the policy is that of one baseline.
void refuseIdleOptions(const CLI::App &app, const ReportOptions &options) {
  bool baselines = options.baselines && options.whatIf.empty();
  if (!options.policy.empty() && !baselines &&
      options.search.algorithm != Algorithm::DreamShard)
    throw CLI::RequiresError("--policy", "--algorithm dreamshard");
  if (options.plan.empty() || baselines)
    return;
  for (const char *flag :
       {"--deadline", "--evaluations", "--seed", "--threads"})
    if (app.count(flag) > 0)
      throw CLI::ExcludesError(flag, "plan with --no-baselines");
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
  app.add_option("-o,--output", options.output, "write the plan to this file")
      ->check(notEmpty());
  app.add_flag("!--no-baselines", options.baselines,
               "leave out the plans of the other algorithms");
  excludeIdleOptions(app);
  try {
    app.parse(argc, argv);
    refuseIdleOptions(app, options);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  return std::nullopt;
}
