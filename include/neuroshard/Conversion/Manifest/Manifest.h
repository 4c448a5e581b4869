//===- Manifest.h - What manifest.json says of an artifact -----*- C++ -*-===//
//
// The compiler's side of the schema "neuroshard.manifest/1"; docs/compile.md
// describes every field. Plain values, no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_MANIFEST_MANIFEST_H
#define NEUROSHARD_CONVERSION_MANIFEST_MANIFEST_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard::manifest {

/// Element types are "f32", "f16", "bf16"; id types "i32", "i64".
struct Optimizer {
  std::string kind; ///< "sgd", "adagrad", "rowwise_adagrad", "adam".
  double eps = 0;
  double beta1 = 0;
  double beta2 = 0;
  double initialAccumulator = 0;
  double weightDecay = 0;
};

struct Table {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  std::string elementType;
  std::optional<Optimizer> optimizer; ///< absent: not trained.
};

struct Lookup {
  int64_t table = 0;
  int64_t feature = 0;
  std::string pooling; ///< "sum", "mean", "none".
  bool weighted = false;
  std::optional<int64_t> paddingIdx;
  std::string resultType;
};

/// The lookups of one jagged input.
struct Exchange {
  std::string input;
  std::string idType;
  bool weighted = false;
  std::vector<std::string> features;
  std::vector<Lookup> lookups;
};

struct Shard {
  std::string name;
  int64_t table = 0;
  std::array<int64_t, 2> rows{};
  std::array<int64_t, 2> cols{};
  std::vector<int64_t> devices;
  std::string tier; ///< "hbm", "dram".
};

struct Program {
  std::string library; ///< file for CPUs.
  /// XXH3 of 128 bits of its .gpu.json; "" if there is none.
  std::string gpuHash;
};

struct Binding {
  int64_t program = 0;
  std::vector<int64_t> slots;                  ///< shard of each slot.
  std::vector<std::array<int64_t, 3>> lookups; ///< exchange, lookup, slot.
};

/// One argument or result of a function.
struct Value {
  /// "device", "tensor", "scalar", "handle", "jagged" (two or three tensors),
  /// and, in the reference, "weights" and "state".
  std::string kind;
  std::string type;           ///< element or scalar type; id type if jagged.
  std::vector<int64_t> shape; ///< -1: known at run time.
  std::optional<int64_t> exchange;
  bool weighted = false;
  std::vector<std::string> features;
  int64_t table = 0;
  int64_t state = 0;
};

struct Function {
  std::string name;
  std::vector<Value> arguments;
  std::vector<Value> results;
};

struct Manifest {
  std::string targetCpu;
  int64_t devices = 0;
  std::string optimizerSemantics; ///< "exact", "per_shard".
  /// Devices with better links inside a group; empty: one group of all.
  std::vector<std::vector<int64_t>> groups;
  std::string wireType = "f32"; ///< of results and gradients on their way.
  std::vector<Table> tables;
  std::vector<Exchange> exchanges;
  std::vector<Shard> shards;
  std::vector<Program> programs;
  std::vector<Binding> bindings; ///< one per device.
  std::vector<Function> functions;
  std::string referenceLibrary; ///< empty: there is none.
  std::vector<Function> referenceFunctions;
};

/// Schema of the manifests that this compiler writes.
inline constexpr char kSchema[] = "neuroshard.manifest/1";

/// The text of manifest.json. Text that is not UTF-8 is replaced.
std::string writeManifest(const Manifest &manifest);

} // namespace neuroshard::manifest

#endif // NEUROSHARD_CONVERSION_MANIFEST_MANIFEST_H
