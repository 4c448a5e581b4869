//===- Manifest.h - Contents of manifest.json -------------------*- C++ -*-===//
//
// The contents of manifest.json: tables, exchanges and their lookups, shards,
// programs, which device binds what, how functions are called. This is the one
// struct, writer and reader of the schema; docs/compile.md describes every
// field. A manifest that parseManifest returns is consistent: every index is in
// range, every table is covered exactly once or replicated, every device binds
// exactly its shards and looks each of them up for every lookup of its table,
// and the layout of exchanges has a place for each of these and no other.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_MANIFEST_H
#define NEUROSHARD_ARTIFACT_MANIFEST_H

#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/ExchangePlan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// The files of a device program.
struct ProgramFiles {
  std::string library; ///< file for CPUs.
};

enum class ValueKind { Device, Handle, Scalar, Tensor, Jagged, Weights, State };

/// An argument or result of a function.
struct ValueSpec {
  ValueKind kind = ValueKind::Device;
  /// Scalar: its type, such as "f32"; Jagged: type of the ids; Tensor, Weights,
  /// State: type of the elements.
  std::string type;
  /// Tensor, Weights, State; -1: known at run time.
  std::vector<int64_t> shape;
  /// Jagged: the exchange that routes it, if one does.
  std::optional<int32_t> exchange;
  bool weighted = false;             ///< Jagged.
  std::vector<std::string> features; ///< Jagged.
  int32_t table = 0;                 ///< Weights, State.
  int32_t state = 0;                 ///< State: number of the state array.
};

struct FunctionSpec {
  std::string name;
  std::vector<ValueSpec> arguments;
  std::vector<ValueSpec> results;
  /// Code of the host reads or writes values of tensors, other than to pass
  /// them to the runtime, so that they must be in its memory.
  bool touchesTensors = false;
};

/// The model on one device, for comparison.
struct ReferenceProgram {
  std::string library;
  std::vector<FunctionSpec> functions;
};

struct Manifest : ExchangePlan {
  std::string targetCpu; ///< LLVM's name of the CPU.
  /// Instruction sets that its code may use, by LLVM's names: CpuFeatures.h.
  std::vector<std::string> targetFeatures;
  std::vector<ProgramFiles> programs;
  /// Of each exchange. parseManifest reads them; writeManifest makes them if
  /// there are none.
  std::vector<ExchangeLayout> layouts;
  std::vector<FunctionSpec> functions;
  std::optional<ReferenceProgram> reference;
  /// The file of each shard's weights, by shard, of an artifact that brings
  /// them (WeightFiles.h); else empty.
  std::vector<std::string> weights;
  /// The hash (hashOf) of each other file of the artifact, by its path in the
  /// folder. Empty for programs of this process.
  std::map<std::string, std::string> files;
};

/// Schema of the manifests that are written and read.
inline constexpr char kManifestSchema[] = "neuroshard.manifest/7";

/// The text of manifest.json. Names that are not UTF-8 are replaced.
std::string writeManifest(const Manifest &manifest);

/// Reads and checks a manifest. Throws a RuntimeError that names the place in
/// the file (`$.shards[3].rows`), what is expected and what was found. Unknown
/// fields are ignored; every field is required, but for `target_features`,
/// `wire_type`, `groups`, `reference`, `weights` and `files`.
Manifest parseManifest(const std::string &text);

/// The second half of parseManifest: checks that hold between the parts.
/// Throws a RuntimeError.
void checkManifest(const Manifest &manifest);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_MANIFEST_H
