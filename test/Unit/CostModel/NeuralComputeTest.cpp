//===- NeuralComputeTest.cpp - Inference equals its definition ------------===//

#include "SmallModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

const DeviceClass &cpu() { return *findDeviceClass("CPU"); }

//===----------------------------------------------------------------------===//
// The definition in NeuralCompute.h, in double, one number at a time.
//===----------------------------------------------------------------------===//

std::vector<double> applyLayer(const DenseLayer &layer,
                               const std::vector<double> &x, bool relu) {
  std::vector<double> y;
  for (int64_t o = 0; o < layer.out; ++o) {
    double sum = layer.bias[static_cast<size_t>(o)];
    for (int64_t i = 0; i < layer.in; ++i)
      sum += layer.weight[static_cast<size_t>(o * layer.in + i)] *
             x[static_cast<size_t>(i)];
    y.push_back(relu ? std::max(0.0, sum) : sum);
  }
  return y;
}

std::vector<double> plainTerms(const NeuralComputeParameters &model,
                               const NeuralComputeMember &member,
                               const ShardWork &shard) {
  std::vector<float> features(kFeatureCount);
  featurize(shard, features);
  std::vector<double> x;
  for (size_t i = 0; i < kFeatureCount; ++i) {
    double margin = 0.1 * (model.features.max[i] - model.features.min[i]);
    double value =
        std::min(std::max<double>(features[i], model.features.min[i] - margin),
                 model.features.max[i] + margin);
    x.push_back((value - model.features.mean[i]) / model.features.std[i]);
  }
  x = applyLayer(member.table[0], x, true);
  x = applyLayer(member.table[1], x, true);
  x = applyLayer(member.table[2], x, false);
  for (double &value : x)
    value = std::exp(value);
  return x;
}

ComputeMs plainTimes(const NeuralComputeParameters &model,
                     const std::vector<ShardWork> &shards) {
  double logForward = 0, logBackward = 0;
  double members = static_cast<double>(model.members.size());
  for (const NeuralComputeMember &member : model.members) {
    std::vector<double> sum(static_cast<size_t>(member.table[2].out));
    for (const ShardWork &shard : shards) {
      std::vector<double> terms = plainTerms(model, member, shard);
      for (size_t k = 0; k < sum.size(); ++k)
        sum[k] += terms[k];
    }
    for (double &value : sum)
      value = std::log(value + 1e-4);
    std::vector<double> r = applyLayer(
        member.head[1], applyLayer(member.head[0], sum, true), false);
    logForward += (sum[0] + r[0]) / members;
    logBackward += (sum[1] + r[1]) / members;
  }
  return {std::exp(logForward), std::exp(logBackward)};
}

//===----------------------------------------------------------------------===//

std::vector<ShardWork> randomShards(size_t count, std::mt19937 &random) {
  std::vector<ShardWork> shards;
  for (size_t i = 0; i < count; ++i)
    shards.push_back(randomShard(random));
  return shards;
}

std::vector<double> sumOf(const NeuralCompute &model,
                          const std::vector<ShardWork> &shards) {
  size_t size = static_cast<size_t>(model.size());
  std::vector<double> sum(size), one(size);
  for (const ShardWork &shard : shards) {
    model.embed(shard, cpu(), one);
    for (size_t k = 0; k < size; ++k)
      sum[k] += one[k];
  }
  return sum;
}

ComputeMs timesOf(const NeuralCompute &model,
                  const std::vector<ShardWork> &shards) {
  return model.head(sumOf(model, shards), static_cast<int>(shards.size()),
                    cpu());
}

void expectNear(const ComputeMs &found, const ComputeMs &expected) {
  EXPECT_NEAR(found.forwardMs, expected.forwardMs, 1e-5 * expected.forwardMs);
  EXPECT_NEAR(found.backwardMs, expected.backwardMs,
              1e-5 * expected.backwardMs);
}

TEST(NeuralComputeTest, EqualsTheDefinition) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 5; ++seed) {
    NeuralComputeParameters parameters = randomModel({}, seed);
    NeuralCompute model(parameters);
    for (size_t count : {1, 2, 3, 15, 200}) {
      std::vector<ShardWork> shards = randomShards(count, random);
      expectNear(timesOf(model, shards), plainTimes(parameters, shards));
    }
  }
}

// Sizes that are no multiple of a vector, and one member.
TEST(NeuralComputeTest, EqualsTheDefinitionForOddSizes) {
  std::mt19937 random(8);
  for (ModelSizes sizes :
       {ModelSizes{1, 7, 5, 2, 1}, ModelSizes{2, 33, 17, 3, 5},
        ModelSizes{4, 130, 65, 17, 31}, ModelSizes{16, 16, 16, 64, 128}}) {
    NeuralComputeParameters parameters = randomModel(sizes);
    ASSERT_THAT(check(parameters), testing::IsEmpty());
    NeuralCompute model(parameters);
    EXPECT_EQ(model.size(), sizes.members * sizes.sums);
    std::vector<ShardWork> shards = randomShards(4, random);
    expectNear(timesOf(model, shards), plainTimes(parameters, shards));
  }
}

// Sums from 1e-4 to 1e6 ms: the logarithms and exponentials of the hot loops.
TEST(NeuralComputeTest, EqualsTheDefinitionForAllMagnitudes) {
  NeuralComputeParameters parameters = randomModel();
  for (NeuralComputeMember &member : parameters.members) {
    std::fill(member.head[1].weight.begin(), member.head[1].weight.end(), 0.f);
    std::fill(member.head[1].bias.begin(), member.head[1].bias.end(), 0.f);
  }
  NeuralCompute model(parameters);
  for (double ms = 1e-4; ms < 1e6; ms *= 1.07) {
    std::vector<double> sum(static_cast<size_t>(model.size()), ms);
    ComputeMs time = model.head(sum, 1, cpu());
    EXPECT_NEAR(time.forwardMs, ms + 1e-4, 2e-6 * ms);
  }
}

TEST(NeuralComputeTest, OrderOfShardsChangesNoBit) {
  std::mt19937 random(9);
  NeuralCompute model(randomModel());
  std::vector<ShardWork> shards = randomShards(100, random);
  ComputeMs first = timesOf(model, shards);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(shards.begin(), shards.end(), random);
    ComputeMs time = timesOf(model, shards);
    EXPECT_EQ(time.forwardMs, first.forwardMs);
    EXPECT_EQ(time.backwardMs, first.backwardMs);
  }
}

TEST(NeuralComputeTest, TakingAShardAwayUndoesAddingIt) {
  std::mt19937 random(10);
  NeuralCompute model(randomModel());
  std::vector<ShardWork> shards = randomShards(30, random);
  std::vector<double> sum = sumOf(model, shards);
  std::vector<double> extra = sumOf(model, {randomShard(random)});
  std::vector<double> changed = sum;
  for (size_t k = 0; k < sum.size(); ++k)
    changed[k] = (changed[k] + extra[k]) - extra[k];
  EXPECT_EQ(changed, sum);
}

// Rows beside a row, padding, blocks: none may change it.
TEST(NeuralComputeTest, BatchSizeChangesNoBit) {
  std::mt19937 random(11);
  for (ModelSizes sizes : {ModelSizes{}, ModelSizes{2, 33, 17, 3, 5}}) {
    NeuralCompute model(randomModel(sizes));
    size_t width = static_cast<size_t>(model.size());
    constexpr size_t kRows = 101;
    std::vector<double> sums;
    std::vector<int> counts;
    std::vector<ComputeMs> single;
    for (size_t r = 0; r < kRows; ++r) {
      std::vector<double> row = sumOf(model, randomShards(1 + r % 5, random));
      sums.insert(sums.end(), row.begin(), row.end());
      counts.push_back(r == 50 ? 0 : 1);
      single.push_back(model.head(row, counts.back(), cpu()));
    }
    for (size_t batch : {1, 2, 7, 8, 9, 31, 32, 33, 64, 101}) {
      std::vector<ComputeMs> out(kRows);
      for (size_t r = 0; r < kRows; r += batch) {
        size_t n = std::min(batch, kRows - r);
        model.heads(std::span(sums).subspan(r * width, n * width),
                    std::span(counts).subspan(r, n), cpu(),
                    std::span(out).subspan(r, n));
      }
      for (size_t r = 0; r < kRows; ++r) {
        EXPECT_EQ(out[r].forwardMs, single[r].forwardMs) << batch << " " << r;
        EXPECT_EQ(out[r].backwardMs, single[r].backwardMs) << batch;
      }
    }
    EXPECT_EQ(single[50].forwardMs, 0);
    EXPECT_EQ(single[50].backwardMs, 0);
  }
}

TEST(NeuralComputeTest, UncertaintyIsTheSpreadOfTheMembers) {
  NeuralComputeParameters parameters = randomModel();
  std::mt19937 random(12);
  std::vector<ShardWork> shards = randomShards(3, random);
  std::vector<double> logs;
  for (const NeuralComputeMember &member : parameters.members) {
    NeuralComputeParameters one = parameters;
    one.members = {member};
    ComputeMs time = plainTimes(one, shards);
    logs.push_back(std::log(time.forwardMs));
    logs.push_back(std::log(time.backwardMs));
  }
  double largest = 0;
  for (size_t o = 0; o < 2; ++o) {
    double mean = (logs[o] + logs[o + 2] + logs[o + 4]) / 3;
    double squares = 0;
    for (size_t m = 0; m < 3; ++m)
      squares += std::pow(logs[m * 2 + o] - mean, 2);
    largest = std::max(largest, std::sqrt(squares / 3));
  }
  NeuralCompute model(parameters);
  EXPECT_GT(largest, 0.01);
  EXPECT_NEAR(model.uncertainty(sumOf(model, shards), 3), largest, 1e-5);
  EXPECT_EQ(model.uncertainty(sumOf(model, shards), 0), 0);
  parameters.members.resize(1);
  NeuralCompute one(parameters);
  EXPECT_EQ(one.uncertainty(sumOf(one, shards), 3), 0);
}

// Beyond the training range ten times the work has ten times the terms.
TEST(NeuralComputeTest, WorkBeyondTheRangeGrowsInProportion) {
  NeuralComputeParameters parameters = randomModel();
  for (int i = 0; i < kFeatureCount; ++i)
    if (countsWork(i))
      parameters.features.max[static_cast<size_t>(i)] = 18; // About 6.6e7.
  // Keeps the terms below the largest that a model gives.
  for (NeuralComputeMember &member : parameters.members) {
    for (float &weight : member.table[2].weight)
      weight *= 0.1f;
    for (float &bias : member.table[2].bias)
      bias = -3;
  }
  NeuralCompute model(parameters);
  std::mt19937 random(14);
  ShardWork shard = randomShard(random);
  shard.width = shard.tableDim = 64;
  shard.lookups = shard.updateLookups = 1000;
  shard.uniqueRows = shard.updateUniqueRows = 1;
  // The margin ends at exp(19.8), 4e8.
  ShardWork inside = shard, outside = shard, farther = shard;
  inside.updateGradientRows = 1e3;
  outside.updateGradientRows = 1e10;
  farther.updateGradientRows = 1e11;
  std::vector<double> terms =
      plainTerms(parameters, parameters.members[0], inside);
  std::vector<double> within = sumOf(model, {inside});
  std::vector<double> near = sumOf(model, {outside}),
                      far = sumOf(model, {farther});
  for (size_t k = 0; k < terms.size(); ++k)
    EXPECT_NEAR(within[k], terms[k], 1e-5 * terms[k]);
  for (size_t k = 0; k < near.size(); ++k)
    EXPECT_NEAR(far[k] / near[k], 10, 1e-4);
}

// Absurd weights give large numbers, never NaN.
TEST(NeuralComputeTest, OverflowStaysFinite) {
  NeuralComputeParameters parameters = randomModel();
  for (NeuralComputeMember &member : parameters.members)
    for (DenseLayer *layer :
         {&member.table[0], &member.table[1], &member.table[2], &member.head[0],
          &member.head[1]})
      for (float &weight : layer->weight)
        weight *= 1e37f;
  std::mt19937 random(13);
  NeuralCompute model(parameters);
  ComputeMs time = timesOf(model, randomShards(3, random));
  EXPECT_TRUE(std::isfinite(time.forwardMs));
  EXPECT_TRUE(std::isfinite(time.backwardMs));
}

} // namespace
