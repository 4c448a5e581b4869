//===- Trial.h - A world beside the oracle ---------------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_RUNTIME_TRIAL_H
#define NEUROSHARD_TEST_RUNTIME_TRIAL_H

#include "TestModels.h"

#include <gtest/gtest.h>
#include <stdexcept>

namespace neuroshard::test {

/// A world and an oracle of one model with the same tables, and batches for
/// both. Throws if the world cannot be made.
struct Trial {
  Trial(const Model &model, const std::vector<ShardPlace> &shards, int devices,
        Data data, unsigned seed, int threads = 1,
        std::vector<int64_t> columnGroups = {0})
      : world(model, shards, devices, threads),
        oracle(model, std::move(columnGroups)), maker(model, data, seed) {
    if (!world.get())
      throw std::runtime_error(world.error());
    maker.fillTables(oracle, world);
  }

  /// A step without training gives the oracle's results to the bit.
  void expectSameForward(const std::vector<int64_t> &sizes) {
    std::vector<Batch> batches = maker.batches(sizes);
    ASSERT_TRUE(world.forward(batches, result)) << world.error();
    EXPECT_EQ(result.results, oracle.forward(batches).results);
  }

  /// A step of training in both.
  void train(const std::vector<int64_t> &sizes, float learningRate,
             int64_t step) {
    std::vector<Batch> batches = maker.batches(sizes);
    train(batches, maker.gradients(oracle, batches), learningRate, step);
  }
  void train(const std::vector<Batch> &batches,
             const std::vector<Values> &gradients, float learningRate,
             int64_t step) {
    ASSERT_TRUE(world.train(batches, gradients, learningRate, step, result))
        << world.error();
    expected = oracle.train(batches, gradients, learningRate, step);
  }

  /// All tables are the oracle's to the bit, and so many states of each.
  void expectSameTables(int states = 0) const {
    for (int t = 0; t < static_cast<int>(world.model.tables.size()); ++t) {
      EXPECT_EQ(world.table(t), oracle.tables[static_cast<size_t>(t)])
          << "table " << t;
      for (int s = 0; s < states; ++s)
        EXPECT_EQ(world.state(t, s), oracle.states[s][static_cast<size_t>(t)])
            << "state " << s << " of table " << t;
    }
  }

  /// Results of the last step and all tables, and so many states of each.
  std::vector<std::vector<float>> allValues(int states = 0) const {
    std::vector<std::vector<float>> all;
    for (const Values &values : result.results)
      all.insert(all.end(), values.begin(), values.end());
    for (int t = 0; t < static_cast<int>(world.model.tables.size()); ++t) {
      all.push_back(world.table(t));
      for (int s = 0; s < states; ++s)
        all.push_back(world.state(t, s));
    }
    return all;
  }

  TestWorld world;
  Oracle oracle;
  DataMaker maker;
  /// Of the last step.
  StepResult result, expected;
};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_TRIAL_H
