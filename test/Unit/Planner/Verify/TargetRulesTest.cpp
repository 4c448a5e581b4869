//===- TargetRulesTest.cpp - Searches and verifier state the same rules ---===//
///
/// \file
/// The searches and the verifier each state the rules of target torchrec-1.9.
/// Of random shards of one table, valid and broken, both accept or refuse the
/// same.
//===----------------------------------------------------------------------===//

#include "Units/TargetRules.h"
#include "Support.h"
#include "Verify/VerifyTarget.h"
#include "neuroshard/Support/Random.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

class RandomShards {
public:
  explicit RandomShards(uint64_t seed) : random(seed) {
    problem.target = Target::TorchRec19;
    problem.topology = *parseTopology(random.oneOf(
        {"2xCPU", "3xCPU", "2x2xCPU", "4xH200", "2x2xH200", "1xCPU"}));
    problem.optimizerSemantics =
        random.oneOf({OptimizerSemantics::Exact, OptimizerSemantics::PerShard});
    int64_t dim = random.chance(10) ? 6 : 4 * random.between(1, 6);
    addTable(problem,
             makeTable("t", random.between(1, 12), dim,
                       random.oneOf({OptimizerKind::SGD,
                                     OptimizerKind::RowWiseAdagrad})),
             2);
    problem.features[0].pooling = random.oneOf({Pooling::Sum, Pooling::None});
    draw();
    if (random.chance(30))
      breakOne();
  }

  std::vector<const Shard *> pointers() const {
    std::vector<const Shard *> result;
    for (const Shard &shard : shards)
      result.push_back(&shard);
    return result;
  }

  ShardingProblem problem;
  std::vector<Shard> shards;

private:
  const Table &table() const { return problem.tables[0]; }
  int devices() const { return problem.topology.deviceCount(); }
  int device() { return static_cast<int>(random.between(0, devices() - 1)); }
  void add(int64_t row, int64_t rowEnd, int64_t column, int64_t columnEnd,
           int onDevice) {
    shards.push_back(makeShard(numbered("s", shards.size()), "t", row, rowEnd,
                               column, columnEnd, {onDevice}));
  }
  void draw();
  void addColumns();
  void addBlocks(int first, int count);
  void breakOne();

  MersenneTwister random;
};

void RandomShards::addColumns() {
  int64_t width = 4 * random.between(1, 3);
  for (int64_t begin = 0; begin < table().dim; begin += width)
    add(0, table().rows, begin, std::min(table().dim, begin + width), device());
}

void RandomShards::addBlocks(int first, int count) {
  int64_t block = (table().rows + count - 1) / count;
  for (int64_t begin = 0; begin < table().rows; begin += block)
    add(begin, std::min(table().rows, begin + block), 0, table().dim,
        first + static_cast<int>(begin / block));
}

void RandomShards::draw() {
  switch (random.between(0, 4)) {
  case 0:
    return add(0, table().rows, 0, table().dim, device());
  case 1:
    return addColumns();
  case 2:
    return addBlocks(0, devices());
  case 3: {
    int size = problem.topology.levels.back().groupSizes.front();
    return addBlocks(random.chance(50) ? 0 : devices() - size, size);
  }
  default:
    if (table().rows < 2 || table().dim < 8)
      return add(0, table().rows, 0, table().dim, device());
    add(0, 1, 0, table().dim, device());
    add(1, table().rows, 0, 4, device());
    add(1, table().rows, 4, table().dim, device());
  }
}

/// Breaks a plan: moves a shard to another device or to host memory, or moves
/// the border between two shards.
void RandomShards::breakOne() {
  size_t index = random.below(shards.size());
  if (random.chance(20)) {
    shards[index].tier = Tier::Dram;
    return;
  }
  if (index == 0 || random.chance(50)) {
    shards[index].devices = {device()};
    return;
  }
  Shard &a = shards[index - 1], &b = shards[index];
  if (a.rowEnd == b.rowBegin && b.rows() > 1) {
    ++a.rowEnd;
    ++b.rowBegin;
  } else if (a.colEnd == b.colBegin && b.width() > 4) {
    a.colEnd += 4;
    b.colBegin += 4;
  }
}

TEST(TargetRulesTest, SearchesAndVerifierAgreeOnEveryTable) {
  int accepted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    RandomShards drawn(seed);
    Diagnostics errors;
    verifyTarget(drawn.problem, drawn.problem.tables[0], drawn.pointers(),
                 groupOfDevices(drawn.problem.topology.levels.back()), errors);
    std::string objection = targetObjection(drawn.problem, 0, drawn.pointers());
    EXPECT_EQ(objection.empty(), errors.empty())
        << "seed " << seed << ": '" << objection << "' but " << text(errors);
    ++(errors.empty() ? accepted : refused);
  }
  EXPECT_GT(accepted, 4000);
  EXPECT_GT(refused, 4000);
}

TEST(TargetRulesTest, OtherTargetsRunEverything) {
  RandomShards drawn(1);
  drawn.problem.target = Target::Native;
  Shard left = makeShard("l", "t", 0, drawn.problem.tables[0].rows, 0, 1, {0});
  EXPECT_EQ(targetObjection(drawn.problem, 0, {&left}), "");
}

} // namespace
