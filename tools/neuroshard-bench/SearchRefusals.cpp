//===- SearchRefusals.cpp - Feasibility of random problems ----------------===//

#include "SearchOracle.h"
#include "SearchReport.h"

#include "neuroshard/Planner/Verify.h"

#include <array>

namespace neuroshard {

namespace {

enum Answer {
  Planned,
  Invalid,
  Proven,
  Unjustified,
  Undecided,
  OwnLimit,
  BadInput,
  kAnswers
};

Answer answerOf(const ShardingProblem &problem, const CostModel &model,
                const SearchOptions &options) {
  auto result = search(problem, model, options);
  if (result)
    return verify(result->plan, problem).empty() ? Planned : Invalid;
  if (result.error().limit == Limit::BadInput)
    return check(problem).empty() ? Unjustified : BadInput;
  if (result.error().limit == Limit::Algorithm)
    return options.algorithm == Algorithm::Default ? Unjustified : OwnLimit;
  switch (judge(problem).verdict) {
  case Verdict::Feasible:
    return Unjustified;
  case Verdict::Infeasible:
    return Proven;
  case Verdict::Undecided:
    return Undecided;
  }
  return Undecided;
}

} // namespace

void reportRefusals(const SearchBenchOptions &bench, SearchReport &report) {
  report.heading("Random problems");
  report.line("Problems with all kinds of constraints, feasible and not, both "
              "targets, 1 to 16 devices, in turn for the default search and "
              "the others. Every plan goes through the verifier, every refusal "
              "to an oracle that shares no code with the searches.\n");
  report.line("| figure | found | aim | |\n|---|---|---|---|");
  const int problems = bench.quick ? 1000 : 10000;
  std::array<int, kAnswers> counts = {};
  for (int i = 0; i < problems; ++i) {
    uint64_t seed = static_cast<uint64_t>(i);
    ShardingProblem problem = randomProblem(seed);
    SearchOptions options;
    options.seed = seed;
    options.threads = 1;
    options.evaluationBudget = 100;
    options.policy = bench.policy.get();
    size_t others = allAlgorithms().size() - 1;
    if (seed % 2)
      options.algorithm = allAlgorithms()[1 + seed / 2 % others];
    if (seed % 4 >= 2)
      options.objective.kind = ObjectiveKind::Published;
    ++counts[answerOf(problem,
                      *makeCostModel("roofline", problem.topology).value(),
                      options)];
  }
  report.figure(
      format("plans that verify, of %d problems", problems),
      format("%d of %d", counts[Planned], counts[Planned] + counts[Invalid]),
      "all", counts[Invalid] == 0);
  report.figure("refusals without a reason",
                format("%d; %d proven, %d bad input, %d by limits of the "
                       "algorithm (none of the default)",
                       counts[Unjustified], counts[Proven], counts[BadInput],
                       counts[OwnLimit]),
                "0", counts[Unjustified] == 0);
  report.figure("refusals that nothing decides",
                format("%d (%.1f %%)", counts[Undecided],
                       100.0 * counts[Undecided] / problems),
                "1 %", counts[Undecided] * 100 <= problems);
}

} // namespace neuroshard
