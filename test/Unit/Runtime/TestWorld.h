//===- TestWorld.h - Worlds made of scalar kernels -------------*- C++ -*-===//
//
// Opens a world of a test model and runs steps of a global batch on it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIME_TESTWORLD_H
#define NEUROSHARD_TEST_RUNTIME_TESTWORLD_H

#include "TestManifest.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <string>
#include <vector>

namespace neuroshard::test {

/// The global batch of one exchange.
struct Batch {
  int64_t size = 0;
  /// [feature][bag][position].
  std::vector<std::vector<std::vector<int64_t>>> ids;
  std::vector<std::vector<std::vector<float>>> weights;
};

/// Values per lookup: rows x dim as f32, already rounded to the result type.
using Values = std::vector<std::vector<float>>;

struct StepResult {
  std::vector<Values> results; ///< [exchange][lookup].
  std::vector<std::vector<std::vector<std::vector<float>>>>
      weightGradients; ///< [exchange][feature][bag][position].
};

class TestWorld {
public:
  TestWorld(Model model, const std::vector<ShardPlace> &shards, int devices,
            int threads = 1);
  TestWorld(Model model, const nlohmann::json &manifest, int threads = 1);
  ~TestWorld();
  TestWorld(const TestWorld &) = delete;
  TestWorld &operator=(const TestWorld &) = delete;

  /// Null if the world could not be made; error() says why.
  nsrt_world *get() const { return world; }
  const std::string &error() const { return message; }

  /// Dense table values and states as f32.
  std::vector<float> table(int index) const;
  void setTable(int index, const std::vector<float> &values);
  std::vector<float> state(int table, int index) const;

  /// Runs one step on all devices; false if it failed, with error() set.
  /// Training steps read gradients [exchange][lookup] of the result's rows.
  bool forward(const std::vector<Batch> &batches, StepResult &result);
  bool train(const std::vector<Batch> &batches,
             const std::vector<Values> &gradients, float learningRate,
             int64_t step, StepResult &result);

  Model model;

private:
  bool run(const char *function, const std::vector<Batch> &batches,
           const std::vector<Values> *gradients, float learningRate,
           int64_t step, StepResult &result);

  Programs programs;
  nsrt_world *world = nullptr;
  std::string message;
};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_TESTWORLD_H
