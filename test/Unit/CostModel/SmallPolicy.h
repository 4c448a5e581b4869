//===- SmallPolicy.h - Policies and problems for tests ----------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_COSTMODEL_SMALLPOLICY_H
#define NEUROSHARD_TEST_COSTMODEL_SMALLPOLICY_H

#include "neuroshard/CostModel/NeuralPolicy.h"

#include <random>
#include <string>
#include <vector>

namespace neuroshard::test {

inline FeatureScale plainScale(size_t count) {
  return {std::vector<float>(count, 0.5f), std::vector<float>(count, 2.0f),
          std::vector<float>(count, -100.0f),
          std::vector<float>(count, 100.0f)};
}

/// Odd sizes, random weights.
inline PlacementPolicyParameters smallPolicy(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto layer = [&](int64_t in, int64_t out) {
    DenseLayer layer{in, out, {}, {}};
    auto draw = [&] {
      return static_cast<float>(random() >> 40) * 0x1p-24f - 0.5f;
    };
    for (int64_t i = 0; i < in * out; ++i)
      layer.weight.push_back(draw());
    for (int64_t i = 0; i < out; ++i)
      layer.bias.push_back(draw());
    return layer;
  };
  PlacementPolicyParameters policy;
  policy.tableScale = plainScale(kFeatureCount);
  policy.deviceScale = plainScale(kPlacementFeatureCount);
  policy.table = {layer(kFeatureCount, 9), layer(9, 5)};
  policy.head = {layer(15 + kPlacementFeatureCount, 11), layer(11, 3),
                 layer(3, 1)};
  return policy;
}

/// Tables of various sizes, one feature each.
inline ShardingProblem smallProblem(int tables, const char *topology) {
  ShardingProblem problem;
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.batch.globalSize = 4096;
  for (int i = 0; i < tables; ++i) {
    Table table;
    table.name = std::string("t").append(std::to_string(i));
    table.rows = 1000 * (i + 1);
    table.dim = 8 * (1 + i % 4);
    Feature feature;
    feature.name = table.name;
    feature.table = i;
    feature.meanPooling = 1 + i;
    problem.tables.push_back(table);
    problem.features.push_back(feature);
  }
  problem.topology = *parseTopology(topology);
  return problem;
}

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_COSTMODEL_SMALLPOLICY_H
