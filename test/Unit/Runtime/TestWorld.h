//===- TestWorld.h - Worlds made of scalar kernels -------------*- C++ -*-===//
//
// Describes a model and where its shards live, and makes from it a manifest,
// the programs of all devices and a world that runs steps on a global batch.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIME_TESTWORLD_H
#define NEUROSHARD_TEST_RUNTIME_TESTWORLD_H

#include "ScalarKernels.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard::test {

struct Table {
  std::string name;
  int64_t rows;
  int64_t dim;
  Element type = Element::F32;
  bool frozen = false; ///< has no optimizer.
};

enum class Pool { Sum, Mean, None };

struct Lookup {
  int table;
  int feature;
  Pool pooling = Pool::Sum;
  bool weighted = false;
  std::optional<int64_t> padding = {};
  Element result = Element::F32;
};

struct Exchange {
  int idBytes;
  bool weighted;
  int numFeatures;
  std::vector<Lookup> lookups;
};

struct ShardPlace {
  int table;
  int64_t rowBegin, rowEnd, colBegin, colEnd;
  std::vector<int> devices;
};

struct Model {
  std::vector<Table> tables;
  std::vector<Exchange> exchanges;
  Optimizer optimizer = Optimizer::Sgd;
  float initialAccumulator = 0;
  bool exact = true;
  Element wire = Element::F32; ///< results and gradients between devices.
  /// Of devices; none: the manifest does not say.
  std::vector<std::vector<int>> groups = {};
};

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

/// The manifest of a model and its shards.
Manifest describe(const Model &model, const std::vector<ShardPlace> &shards,
                  int devices);
/// Its text as JSON; tests change it to break it.
nlohmann::json makeManifest(const Model &model,
                            const std::vector<ShardPlace> &shards, int devices);

/// The programs of all devices; they must outlive the world.
struct Programs {
  struct Program {
    std::vector<nsrt_slot_entry> slots;
    std::vector<nsrt_lookup_entry> lookups;
    nsrt_program program;
  };
  std::vector<std::unique_ptr<Program>> all;
  std::vector<const nsrt_program *> pointers;
};
Programs makePrograms(const Model &model, const nlohmann::json &manifest);

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
