//===- TestManifest.h - Manifests and programs of test models --*- C++ -*-===//
//
// Describes a model and where its shards live, and makes from it a manifest and
// the programs of all devices, with scalar kernels.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIME_TESTMANIFEST_H
#define NEUROSHARD_TEST_RUNTIME_TESTMANIFEST_H

#include "ScalarKernels.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/KernelABI.h"

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
  /// Of a shard in tier "ssd".
  CacheSpec cache = {};
  int64_t syncEvery = 0;
};

struct Model {
  std::vector<Table> tables;
  std::vector<Exchange> exchanges;
  Optimizer optimizer = Optimizer::Sgd;
  float initialAccumulator = 0;
  bool exact = true;
  /// In which results and gradients travel between devices.
  WireType wire;
  /// Groups of devices; empty: the manifest has none.
  std::vector<std::vector<int>> groups = {};
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

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_TESTMANIFEST_H
