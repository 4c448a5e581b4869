//===- HotRowsTest.cpp - Copies of the first rows, cold rows elsewhere ----===//
//
// Shows that parts of the rows of a table whose rows are in the order of their
// use are priced by the ids that they get: as counted on drawn ids.
//
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Model/LookupShares.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/PlanMemory.h"
#include "neuroshard/Planner/Traffic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

// kHot is at a point of the row mass, between which it is linear.
constexpr int64_t kRows = 20'000, kHot = 600;
constexpr int64_t kBatch = 2'048;
constexpr int kDevices = 4;

/// Uses of rows in order by Zipf's law.
std::vector<double> zipf() {
  std::vector<double> weights;
  for (int64_t row = 0; row < kRows; ++row)
    weights.push_back(std::pow(static_cast<double>(row + 1), -1.05));
  return weights;
}

/// Ids of each feature of each device's part of a batch.
using Ids = std::vector<std::vector<std::vector<int64_t>>>;

Ids drawIds(const ShardingProblem &problem, std::mt19937_64 &random) {
  std::vector<double> weights = zipf();
  std::discrete_distribution<int64_t> draw(weights.begin(), weights.end());
  Ids ids(kDevices);
  for (std::vector<std::vector<int64_t>> &ofDevice : ids)
    for (const Feature &feature : problem.features) {
      auto count = static_cast<size_t>(feature.meanPooling * kBatch / kDevices);
      std::vector<int64_t> &drawn = ofDevice.emplace_back(count);
      for (int64_t &id : drawn)
        id = draw(random);
    }
  return ids;
}

/// As 'neuroshard profile' measures them.
AccessStatistics profile(const Ids &ids) {
  std::map<int64_t, int64_t> counts;
  for (const auto &ofDevice : ids)
    for (const auto &ofFeature : ofDevice)
      for (int64_t id : ofFeature)
        ++counts[id];
  AccessStatistics access;
  access.batch = kBatch;
  for (auto [id, count] : counts) {
    size_t bin = 0;
    while (count > kReuseBinUpper[bin])
      ++bin;
    access.reuse[bin] += 1.0 / static_cast<double>(counts.size());
  }
  std::vector<double> weights = zipf();
  double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double share : {1e-3, 1e-2, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0}) {
    auto end = weights.begin() + static_cast<int64_t>(share * kRows);
    access.rowMass.push_back(
        {share, std::accumulate(weights.begin(), end, 0.0) / all});
  }
  access.rowsByUse = true;
  return access;
}

/// One table, whose rows a pooled and an unpooled feature read.
ShardingProblem oneTable(const std::string &topology = "4xCPU@1GiB") {
  ShardingProblem problem;
  problem.batch.globalSize = kBatch;
  problem.topology = *parseTopology(topology);
  problem.constraints.reserves = {0, 0, 0};
  addTable(problem, makeTable("a", kRows, 16, OptimizerKind::Adagrad), 8);
  Feature steps = problem.features[0];
  steps.name = "steps";
  steps.meanPooling = 4;
  steps.pooling = Pooling::None;
  problem.features.push_back(steps);
  std::mt19937_64 random(1);
  problem.tables[0].access = profile(drawIds(problem, random));
  return problem;
}

bool isIn(const Range &rows, int64_t id) {
  return rows.begin <= id && id < rows.end;
}

/// The step that these ids bring to the shards.
StepLoad loadOf(const ShardingProblem &problem,
                const std::vector<Shard> &shards, const Ids &ids) {
  ExchangePlan plan = exchangePlan(problem, shards);
  std::vector<ExchangeLayout> layouts = makeLayouts(plan);
  StepLoad load;
  ExchangeLoad &exchange = load.exchanges.emplace_back();
  for (const auto &ofDevice : ids) {
    std::vector<int64_t> counts;
    for (const BucketLayout &bucket : layouts[0].buckets)
      counts.push_back(std::ranges::count_if(
          ofDevice[static_cast<size_t>(bucket.lookup)],
          [&](int64_t id) { return isIn(bucket.rows, id); }));
    exchange.idsOfBucket.push_back(
        std::make_shared<const std::vector<int64_t>>(std::move(counts)));
    exchange.batches.push_back(kBatch / kDevices);
  }
  load.distinctRows = [ids](int32_t, const Range &rows, const Readers &ranks) {
    std::set<int64_t> distinct;
    std::vector<int32_t> all(kDevices);
    std::iota(all.begin(), all.end(), 0);
    for (int32_t rank : ranks.shareOf(kDevices) == 1 ? all : ranks.list())
      for (const auto &ofFeature : ids[static_cast<size_t>(rank)])
        for (int64_t id : ofFeature)
          if (isIn(rows, id))
            distinct.insert(id);
    return std::ssize(distinct);
  };
  return load;
}

/// Rows [0, kHot) on all devices, the others on device 1, or cut by columns.
std::vector<Shard> hotRows(bool byColumns) {
  std::vector<Shard> shards = {
      makeShard("hot", "a", 0, kHot, 0, 16, {0, 1, 2, 3})};
  if (byColumns) {
    shards.push_back(makeShard("cold_0", "a", kHot, kRows, 0, 8, {1}));
    shards.push_back(makeShard("cold_1", "a", kHot, kRows, 8, 16, {2}));
  } else {
    shards.push_back(makeShard("cold", "a", kHot, kRows, 0, 16, {1}));
  }
  return shards;
}

void expectNear(const PairBytes &predicted, const PairBytes &counted,
                double tolerance, const char *what) {
  for (size_t from = 0; from < counted.size(); ++from)
    for (size_t to = 0; to < counted.size(); ++to)
      EXPECT_NEAR(static_cast<double>(predicted[from][to]),
                  static_cast<double>(counted[from][to]),
                  tolerance * static_cast<double>(counted[from][to]))
          << what << " from " << from << " to " << to;
}

TEST(HotRowsTest, PredictedBytesAreThoseOfDrawnIds) {
  for (const char *topology : {"4xCPU@1GiB", "2x2xCPU@1GiB"})
    for (bool byColumns : {false, true}) {
      SCOPED_TRACE(topology);
      ShardingProblem problem = oneTable(topology);
      std::vector<Shard> shards = hotRows(byColumns);
      std::mt19937_64 random(2);
      StepTraffic counted = planTraffic(
          problem, shards, loadOf(problem, shards, drawIds(problem, random)));
      StepTraffic predicted = planTraffic(problem, shards);
      const ExchangeTraffic &a = predicted.exchanges[0],
                            &b = counted.exchanges[0];
      expectNear(a.ids, b.ids, 0.03, "ids");
      expectNear(a.relayedIds, b.relayedIds, 0.03, "ids by relay");
      expectNear(a.results, b.results, 0.03, "results");
      expectNear(a.gradients, b.gradients, 0.03, "gradients");
      expectNear(predicted.copySums, counted.copySums, 0.08, "sums");
      expectNear(predicted.norms, counted.norms, 0.08, "norms");
      // In proportion to the rows ids would be several times too many.
      problem.tables[0].access->rowsByUse = false;
      ExchangeTraffic even = planTraffic(problem, shards).exchanges[0];
      auto allIds = [](const ExchangeTraffic &one) {
        int64_t bytes = 0;
        for (const PairBytes *pairs : {&one.ids, &one.relayedIds})
          for (size_t from = 0; from < pairs->size(); ++from)
            for (size_t to = 0; to < pairs->size(); ++to)
              bytes += from == to ? 0 : (*pairs)[from][to];
        return bytes;
      };
      EXPECT_GT(allIds(even), 2 * allIds(b));
    }
}

TEST(HotRowsTest, TermsAreTheTraffic) {
  ShardingProblem problem = oneTable();
  std::vector<Shard> shards = hotRows(false);
  ExchangeTraffic one = planTraffic(problem, shards).exchanges[0];
  std::vector<DeviceLoad> loads =
      planLoads(problem, makePlan(problem, shards), *makeRooflineModel());
  // Of four parts of the batch, one is the owner's, with hot rows of its own.
  EXPECT_NEAR(loads[1].inputBytes, 4 * static_cast<double>(one.ids[0][1]), 40);
  EXPECT_EQ(loads[0].inputBytes, 0);
  // The owner of the cold rows sends each bag, whether ids of it are cold or
  // not, and each cold id of the unpooled feature.
  double cold = 1 - lookupShareOfRows(problem.tables[0], 0, kHot);
  EXPECT_NEAR(loads[1].forwardBytes, (kBatch + 4 * kBatch * cold) * 16 * 4, 1);
  EXPECT_NEAR(loads[1].forwardBytes, 4 * static_cast<double>(one.results[1][0]),
              200);
  EXPECT_EQ(loads[0].forwardBytes, 0);
}

TEST(HotRowsTest, PartsAddUpToTheTable) {
  ShardingProblem problem = oneTable();
  const std::vector<int> features = featuresOfTables(problem)[0];
  auto describe = [&](int64_t begin, int64_t end) {
    return describeShard(problem, 0, features,
                         makeShard("a", "a", begin, end, 0, 16, {0}), false);
  };
  ShardWork whole = describe(0, kRows);
  for (bool byUse : {true, false}) {
    problem.tables[0].access->rowsByUse = byUse;
    double lookups = 0, rows = 0, last = whole.lookups;
    for (int64_t begin = 0; begin < kRows; begin += 1'000) {
      ShardWork part = describe(begin, begin + 1'000);
      lookups += part.lookups;
      rows += part.uniqueRows;
      EXPECT_LE(part.uniqueRows, 1'000);
      EXPECT_LE(part.lookups, last * (1 + 1e-9));
      last = part.lookups;
      EXPECT_EQ(part.outputRows, kBatch + part.lookups / 3);
    }
    EXPECT_NEAR(lookups, whole.lookups, 1e-6 * lookups);
    EXPECT_NEAR(rows, whole.uniqueRows, 0.01 * rows);
    EXPECT_NEAR(describe(0, kHot).lookups / whole.lookups, byUse ? 0.722 : 0.03,
                1e-3);
  }
}

// Each copy has its readers' ids: the buffers of a step fit into what is
// planned for them.
TEST(HotRowsTest, PlannedMemoryIsEnough) {
  for (const char *topology : {"4xCPU@1GiB", "2x2xCPU@1GiB", "2x2xH200"})
    for (bool byColumns : {false, true}) {
      ShardingProblem problem = oneTable(topology);
      problem.batch.inputCopies = 1;
      std::vector<Shard> shards = hotRows(byColumns);
      std::vector<BufferBytes> exact = planBuffers(problem, shards);
      MemoryReport sums = planMemory(problem, shards);
      for (size_t device = 0; device < exact.size(); ++device) {
        const MemoryTerms &terms = sums.devices[device];
        EXPECT_GE(
            terms.idsBytes + std::max(terms.forwardBytes, terms.backwardBytes),
            exact[device].idBytes() + std::max(exact[device].forwardBytes(),
                                               exact[device].backwardBytes()))
            << topology << " device " << device;
      }
    }
}

} // namespace
