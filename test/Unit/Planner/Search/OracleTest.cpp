//===- OracleTest.cpp - Every plan is valid, every refusal is right -------===//
///
/// \file
/// Random problems, feasible and not, of both targets. Each plan passes the
/// independent verifier. Each refusal that claims that there is no plan is
/// compared with an oracle that shares no code with the search. Runs a sample,
/// or all 10,000 problems with NEUROSHARD_ALL=1.
//===----------------------------------------------------------------------===//

#include "SearchOracle.h"
#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

struct Counts {
  int planned = 0;
  int badInput = 0;
  int infeasible = 0;
  int undecided = 0;
  /// Refusals of other algorithms that name their own limits.
  int algorithmLimit = 0;
};

/// The first 250 or 10,000, and those that were once refused though there was a
/// plan.
std::vector<uint64_t> problemSeeds() {
  uint64_t count = std::getenv("NEUROSHARD_ALL") ? 10000 : 250;
  std::vector<uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), 0);
  for (uint64_t hard : {3928, 6804, 7724})
    if (hard >= count)
      seeds.push_back(hard);
  return seeds;
}

SearchOptions optionsFor(uint64_t seed) {
  SearchOptions options;
  options.seed = seed;
  options.threads = 1;
  options.evaluationBudget = 100;
  // Every other problem for the default, the rest in turn for the others.
  std::vector<Algorithm> others;
  for (Algorithm algorithm : allAlgorithms())
    if (algorithm != Algorithm::Default && algorithm != Algorithm::DreamShard)
      others.push_back(algorithm);
  if (seed % 2)
    options.algorithm = others[seed / 2 % others.size()];
  options.objective.kind =
      seed % 4 < 2 ? ObjectiveKind::Step : ObjectiveKind::Published;
  return options;
}

std::string describe(uint64_t seed, const ShardingProblem &problem,
                     const PlanningError &error) {
  std::string what = numbered("seed ", seed);
  what.append(": ").append(error.str());
  if (std::getenv("NEUROSHARD_SHOW_PROBLEM"))
    what.append("\n").append(writeWorkload(problem));
  return what;
}

/// The limit named is one that binds. Without rules it is memory. After a
/// failed search it is not memory if the memory would suffice without the rules
/// and the rules leave no plan even with unlimited memory.
void checkLimit(uint64_t seed, ShardingProblem problem,
                const PlanningError &error) {
  bool memory =
      error.limit == Limit::DeviceMemory || error.limit == Limit::HostMemory;
  bool noRules = problem.constraints.pins.empty() &&
                 problem.constraints.forbids.empty() &&
                 problem.constraints.coLocate.empty() &&
                 problem.constraints.separate.empty() &&
                 problem.constraints.tables.empty() &&
                 problem.constraints.fixedShards.empty() &&
                 problem.target == Target::Native;
  if (noRules) {
    EXPECT_TRUE(memory) << describe(seed, problem, error);
  }
  if (error.message.find("found no placement") == std::string::npos)
    return;
  ShardingProblem free = problem;
  free.constraints = {};
  free.constraints.reserves = problem.constraints.reserves;
  if (judge(free).verdict != Verdict::Feasible)
    return;
  for (Device &device : problem.topology.devices)
    device.memoryBytes = int64_t{1} << 40;
  for (Host &host : problem.topology.hosts)
    host.memoryBytes = int64_t{1} << 40;
  if (judge(problem).verdict == Verdict::Infeasible) {
    EXPECT_FALSE(memory) << describe(seed, problem, error);
  }
}

void judgeRefusal(uint64_t seed, const ShardingProblem &problem,
                  const PlanningError &error, Counts &counts) {
  EXPECT_FALSE(error.message.empty()) << seed;
  EXPECT_FALSE(error.advice.empty()) << seed;
  if (error.limit == Limit::Algorithm) {
    ++counts.algorithmLimit;
    return;
  }
  Judgement judgement = judge(problem);
  if (judgement.verdict == Verdict::Undecided) {
    ++counts.undecided;
    if (std::getenv("NEUROSHARD_SHOW_PROBLEM"))
      std::printf("UNDECIDED nodes %lld %s\n", (long long)judgement.nodes,
                  describe(seed, problem, error).c_str());
    return;
  }
  ++counts.infeasible;
  EXPECT_EQ(judgement.verdict, Verdict::Infeasible)
      << describe(seed, problem, error) << "\nbut there is a plan:\n"
      << writePlan(judgement.plan);
  checkLimit(seed, problem, error);
}

TEST(OracleTest, PlansAreValidAndRefusalsJustified) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  Counts counts;
  for (uint64_t seed : problemSeeds()) {
    ShardingProblem problem = randomProblem(seed);
    SearchOptions options = optionsFor(seed);
    auto result = search(problem, *model, options);
    if (result) {
      ++counts.planned;
      EXPECT_EQ(text(verify(result->plan, problem)), "") << seed;
      continue;
    }
    if (result.error().limit == Limit::BadInput) {
      ++counts.badInput;
      EXPECT_NE(text(check(problem)), "") << seed;
      continue;
    }
    EXPECT_FALSE(options.algorithm == Algorithm::Default &&
                 result.error().limit == Limit::Algorithm)
        << seed;
    judgeRefusal(seed, problem, result.error(), counts);
  }
  std::printf("%d planned, %d refused with proof, %d undecided, %d by the "
              "algorithm's limits, %d bad input\n",
              counts.planned, counts.infeasible, counts.undecided,
              counts.algorithmLimit, counts.badInput);
  int count = static_cast<int>(problemSeeds().size());
  EXPECT_GT(counts.planned, count / 4);
  EXPECT_GT(counts.infeasible, count / 10);
  EXPECT_LT(counts.badInput, count / 10);
  EXPECT_LE(counts.undecided, count / 100);
}

} // namespace
