//===- SmallModel.h - Random shards and models for tests --------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_COSTMODEL_SMALLMODEL_H
#define NEUROSHARD_TEST_COSTMODEL_SMALLMODEL_H

#include "neuroshard/CostModel/NeuralCompute.h"

#include <cmath>
#include <random>

namespace neuroshard::test {

inline DenseLayer randomLayer(int64_t in, int64_t out, std::mt19937 &random) {
  // As LibTorch initialises: uniform within 1 / sqrt(inputs).
  float limit = 1 / std::sqrt(static_cast<float>(in));
  std::uniform_real_distribution<float> uniform(-limit, limit);
  DenseLayer layer{in, out, {}, {}};
  for (int64_t i = 0; i < in * out; ++i)
    layer.weight.push_back(uniform(random));
  for (int64_t i = 0; i < out; ++i)
    layer.bias.push_back(uniform(random));
  return layer;
}

struct ModelSizes {
  int members = 3;
  int hidden0 = kTableHidden0, hidden1 = kTableHidden1;
  int sums = kSumWidth, headHidden = kHeadHidden;
};

/// A model with random weights, trained on everything up to 1e12.
inline NeuralComputeParameters randomModel(const ModelSizes &sizes = {},
                                           unsigned seed = 1) {
  std::mt19937 random(seed);
  NeuralComputeParameters model;
  model.features.mean.assign(kFeatureCount, 5);
  model.features.std.assign(kFeatureCount, 4);
  model.features.min.assign(kFeatureCount, 0);
  model.features.max.assign(kFeatureCount, 27.7f);
  for (int i = 0; i < sizes.members; ++i)
    model.members.push_back({{randomLayer(kFeatureCount, sizes.hidden0, random),
                              randomLayer(sizes.hidden0, sizes.hidden1, random),
                              randomLayer(sizes.hidden1, sizes.sums, random)},
                             {randomLayer(sizes.sums, sizes.headHidden, random),
                              randomLayer(sizes.headHidden, 2, random)}});
  model.deviceClass = "CPU";
  model.measured = true;
  model.card = R"({"machine": "a test"})";
  return model;
}

/// A shard somewhere in the usual range.
inline ShardWork randomShard(std::mt19937 &random) {
  auto logUniform = [&](double low, double high) {
    std::uniform_real_distribution<double> u(std::log(low), std::log(high));
    return std::exp(u(random));
  };
  ShardWork work;
  work.rows = work.tableRows = static_cast<int64_t>(logUniform(10, 1e7));
  work.width = work.tableDim = static_cast<int64_t>(logUniform(4, 512));
  work.pooling = logUniform(1, 100);
  work.features = 1;
  work.outputRows = logUniform(256, 65536);
  work.lookups = work.updateLookups = work.outputRows * work.pooling;
  work.uniqueRows = work.updateUniqueRows = work.lookups / logUniform(1.01, 30);
  work.updateGradientRows = work.outputRows;
  work.optimizer = static_cast<OptimizerKind>(random() % 4);
  work.elementType = static_cast<ElementType>(random() % 3);
  return work;
}

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_COSTMODEL_SMALLMODEL_H
