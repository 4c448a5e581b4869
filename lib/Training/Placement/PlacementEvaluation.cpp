//===- PlacementEvaluation.cpp - Policies against other planners ----------===//

#include "neuroshard/Training/PlacementEvaluation.h"

#include "PlacementEpisodes.h"

#include "neuroshard/Planner/Search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

using namespace neuroshard;

namespace {

/// Seeds of training are smaller: see PlacementTraining.cpp.
constexpr uint64_t kHeldOutSeeds = uint64_t{1} << 62;
/// Costs that differ by less count as equal.
constexpr double kSame = 1e-9;

using Cost = std::optional<double>;

enum Planner {
  Policy,
  Sampled,
  Random,
  Dim,
  Size,
  Lookup,
  SizeLookup,
  BestOfKeys,
  Greedy,
  WholeTables,
  Published,
  Default,
  PlannerCount
};

constexpr std::array<const char *, PlannerCount> kNames = {
    "dreamshard",     "dreamshard, sampled",
    "random",         "dim",
    "size",           "lookup",
    "size-lookup",    "best of the four",
    "greedy by cost", "default, whole tables",
    "published",      "default"};

using Costs = std::array<Cost, PlannerCount>;

class Judge {
public:
  Judge(const PlacementPolicy &policy,
        const PlacementEvaluationOptions &options)
      : policy(policy), options(options) {}

  Costs costsOf(const PlacementExample &example) const;

private:
  Cost cost(const ShardingProblem &problem, const PlacementExample &example,
            SearchOptions search) const {
    search.objective = example.objective;
    search.policy = &policy;
    search.threads = 1;
    auto result = neuroshard::search(problem, *example.model, search);
    return result ? Cost(result->breakdown.costMs) : std::nullopt;
  }

  /// The default search where no table may be cut or copied.
  Cost costOfWholeTables(const PlacementExample &example) const;

  const PlacementPolicy &policy;
  const PlacementEvaluationOptions &options;
};

Cost Judge::costOfWholeTables(const PlacementExample &example) const {
  ShardingProblem whole = example.problem;
  for (size_t table = 0; table < whole.tables.size(); ++table)
    whole.constraints.tables.push_back(
        {static_cast<int>(table), {ShardingKind::TableWise}, 1});
  return cost(whole, example, {});
}

Costs Judge::costsOf(const PlacementExample &example) const {
  auto run = [&](Algorithm algorithm, int samples = 0, bool splits = true) {
    SearchOptions search;
    search.algorithm = algorithm;
    search.policySamples = samples;
    if (!splits)
      search.published.depth = 0;
    return cost(example.problem, example, search);
  };
  Costs costs;
  costs[Policy] = run(Algorithm::DreamShard);
  costs[Sampled] = run(Algorithm::DreamShard, options.samples);
  costs[Random] = run(Algorithm::Random);
  costs[Dim] = run(Algorithm::Dim);
  costs[Size] = run(Algorithm::Size);
  costs[Lookup] = run(Algorithm::Lookup);
  costs[SizeLookup] = run(Algorithm::SizeLookup);
  for (Planner key : {Dim, Size, Lookup, SizeLookup})
    if (costs[key] && (!costs[BestOfKeys] || *costs[key] < *costs[BestOfKeys]))
      costs[BestOfKeys] = costs[key];
  costs[Greedy] = run(Algorithm::Published, 0, /*splits=*/false);
  costs[WholeTables] = costOfWholeTables(example);
  costs[Published] = run(Algorithm::Published);
  costs[Default] = run(Algorithm::Default);
  return costs;
}

PlacementComparison compare(Planner planner, const std::vector<Costs> &tasks) {
  PlacementComparison comparison;
  comparison.planner = kNames[planner];
  double logs = 0;
  for (const Costs &costs : tasks) {
    const Cost &own = costs[Policy], &other = costs[planner];
    comparison.missing += !other;
    if (!own || !other)
      continue;
    ++comparison.both;
    logs += std::log(*own / *other);
    comparison.cheaper += *own < *other * (1 - kSame);
    comparison.equal += std::abs(*own - *other) <= *other * kSame;
  }
  if (comparison.both > 0)
    comparison.ratio = std::exp(logs / comparison.both);
  return comparison;
}

} // namespace

Expected<std::vector<PlacementComparison>>
neuroshard::evaluatePlacement(const PlacementPolicy &policy,
                              const PlacementEvaluationOptions &options) {
  if (Diagnostics errors = check(options.tasks); !errors.empty())
    return tl::unexpected(errors);
  if (options.count < 1)
    return failure("count", "expected at least one task");
  Expected<std::vector<PlacementExample>> drawn = randomPlacementExamples(
      options.tasks, kHeldOutSeeds + options.seed * 1000003, options.count);
  if (!drawn)
    return tl::unexpected(drawn.error());
  const std::vector<PlacementExample> &examples = *drawn;
  Judge judge(policy, options);
  std::vector<Costs> costs(examples.size());
  inParallel(options.threads, examples.size(),
             [&](size_t i) { costs[i] = judge.costsOf(examples[i]); });
  std::vector<PlacementComparison> comparisons;
  for (int planner = 0; planner < PlannerCount; ++planner)
    comparisons.push_back(compare(static_cast<Planner>(planner), costs));
  return comparisons;
}

std::string
neuroshard::toMarkdown(const std::vector<PlacementComparison> &comparisons) {
  std::string text = "| planner | tasks without a plan | dreamshard's cost "
                     "against it | cheaper / same / of |\n|---|---|---|---|\n";
  for (const PlacementComparison &row : comparisons) {
    char line[256];
    std::snprintf(line, sizeof line, "| %s | %d | %+.1f %% | %d / %d / %d |\n",
                  row.planner.c_str(), row.missing, 100 * (row.ratio - 1),
                  row.cheaper, row.equal, row.both);
    text += line;
  }
  return text;
}
