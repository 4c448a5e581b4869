//===- TestArtifact.h - Artifacts for the fake driver ----------*- C++ -*-===//
//
// Describes a model and its shards in a few words and writes the manifest and
// the GPU programs for it. All tables are f32.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIMECUDA_TESTARTIFACT_H
#define NEUROSHARD_TEST_RUNTIMECUDA_TESTARTIFACT_H

#include "FakeDriver.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace neuroshard::test {

enum class Rule { None, Sgd, RowwiseAdagrad };
/// In the order of the Model's Pooling.
enum class Bags { Sum, Mean, None };

struct TableText {
  int64_t rows;
  int64_t dim;
  Rule rule = Rule::Sgd;
};

struct ShardText {
  int32_t table;
  int64_t rowBegin, rowEnd;
  int64_t colBegin, colEnd;
  int32_t device = 0;
};

struct LookupText {
  int32_t table;
  int32_t feature;
  Bags bags = Bags::Sum;
  bool weighted = false;
};

struct ExchangeText {
  int32_t idBytes = 8;
  int32_t features = 1;
  bool weighted = false;
  std::vector<LookupText> lookups;
};

/// One lookup on one slot.
struct Bound {
  int32_t exchange, lookup, slot;
};

struct Model {
  std::vector<TableText> tables;
  std::vector<ExchangeText> exchanges;
  std::vector<ShardText> shards;
  int32_t devices = 1;
  int64_t itemsPerBlock = 3;

  /// Every table whole on device 0.
  void placeWhole();
  std::vector<int32_t> slotsOf(int32_t device) const;
  std::vector<Bound> lookupsOf(int32_t device) const;
  /// Ids are packed as i32 for several devices.
  int32_t kernelIdBytes(const ExchangeText &exchange) const {
    return devices > 1 ? 4 : exchange.idBytes;
  }
  bool splitsColumns(int32_t table) const;

  nlohmann::json manifest() const;
  /// The GPU program of a device, whose bodies are appended to those of the
  /// fake.
  nlohmann::json program(int32_t device, fake::State &state) const;
};

/// A folder with the files of a model, removed at the end.
class Artifact {
public:
  Artifact(const Model &model, fake::State &state);
  ~Artifact();
  Artifact(const Artifact &) = delete;
  Artifact &operator=(const Artifact &) = delete;

  std::string path() const { return folder.string(); }
  void write(const std::string &file, const std::string &text) const;
  nlohmann::json read(const std::string &file) const;
  /// Writes the hashes that the files have now into the manifest.
  void sign() const;

private:
  std::filesystem::path folder;
};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIMECUDA_TESTARTIFACT_H
