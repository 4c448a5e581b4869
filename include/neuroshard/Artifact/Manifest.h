//===- Manifest.h - Contents of manifest.json -------------------*- C++ -*-===//
//
// The contents of manifest.json: tables, exchanges and their lookups, shards,
// programs, which device binds what, how functions are called. This is the one
// struct, writer and reader of the schema; docs/compile.md describes every
// field. A manifest that parseManifest returns is consistent: every index is in
// range, every table is covered exactly once or replicated, every device binds
// exactly its shards and looks each of them up for every lookup of its table.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_MANIFEST_H
#define NEUROSHARD_ARTIFACT_MANIFEST_H

#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/Types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// Half-open range of rows, columns, bags or ids.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool overlaps(const Range &other) const {
    return begin < other.end && other.begin < end;
  }
  bool operator==(const Range &) const = default;
  auto operator<=>(const Range &) const = default;
};

struct TableSpec {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  ElementType elementType = ElementType::F32;
  /// None: nothing trains the table, so it has no state.
  std::optional<Optimizer> optimizer;

  bool trained() const { return optimizer.has_value(); }
  OptimizerStates states() const {
    return optimizer ? optimizerStates(optimizer->kind) : OptimizerStates();
  }
};

/// A lookup of one feature of an exchange in one table.
struct ExchangeLookup {
  int32_t table = 0;
  int32_t feature = 0;
  Pooling pooling = Pooling::Sum;
  bool weighted = false;
  std::optional<int64_t> paddingIdx;
  ElementType resultType = ElementType::F32;

  bool pooled() const { return pooling != Pooling::None; }
  /// Pooled lookups leave padding ids out; unpooled ones look them up.
  bool dropsPadding() const { return pooled() && paddingIdx.has_value(); }
};

/// The lookups of one jagged input.
struct ExchangeSpec {
  std::string input;
  IdType idType = IdType::I64;
  bool weighted = false;
  std::vector<std::string> features;
  std::vector<ExchangeLookup> lookups;
  /// What errors about the input begin with. Set by parseManifest: nothing if
  /// the model has no other input, since its name is the compiler's and users
  /// know their features.
  std::string where;

  int32_t idBytes() const {
    return static_cast<int32_t>(neuroshard::idBytes(idType));
  }
};

struct ShardSpec {
  std::string name;
  int32_t table = 0;
  Range rows;
  Range cols;
  std::vector<int32_t> devices;
  Tier tier = Tier::Hbm;

  /// One full copy on every device.
  bool replicated() const { return devices.size() > 1; }
};

struct LookupBinding {
  int32_t exchange = 0;
  int32_t lookup = 0;
  int32_t slot = 0;
};

/// The files of a device program.
struct ProgramFiles {
  std::string library; ///< file for CPUs.
  std::string gpuHash; ///< of its .gpu.json; "" if there is none.
};

struct DeviceBinding {
  int32_t program = 0;
  std::vector<int32_t> slots; ///< shard of each slot.
  std::vector<LookupBinding> lookups;
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
};

/// The model on one device, for comparison.
struct ReferenceProgram {
  std::string library;
  std::vector<FunctionSpec> functions;
};

struct Manifest {
  std::string targetCpu; ///< LLVM's name of the CPU.
  int32_t numDevices = 0;
  OptimizerSemantics optimizerSemantics = OptimizerSemantics::Exact;
  /// In which results and gradients travel between devices.
  ElementType wireType = ElementType::F32;
  /// Devices with better links inside a group than between groups; groups are
  /// of one size. Empty: one group of all.
  std::vector<std::vector<int32_t>> groups;
  std::vector<TableSpec> tables;
  std::vector<ExchangeSpec> exchanges;
  std::vector<ShardSpec> shards;
  std::vector<ProgramFiles> programs;
  std::vector<DeviceBinding> bindings; ///< one per device.
  std::vector<FunctionSpec> functions;
  std::optional<ReferenceProgram> reference;

  const TableSpec &tableOf(const ShardSpec &shard) const {
    return tables[static_cast<size_t>(shard.table)];
  }
  /// True if the owners of the shard's rows must exchange gradient norms; the
  /// rule is exchangesNorms() of the Model.
  bool needsNormExchange(const ShardSpec &shard) const;
  /// The same for each table.
  std::vector<bool> tablesWithNormExchange() const;
};

/// Schema of the manifests that are written and read.
inline constexpr char kManifestSchema[] = "neuroshard.manifest/2";

/// The text of manifest.json, with the layout of exchanges that follows from
/// the manifest. Names that are not UTF-8 are replaced.
std::string writeManifest(const Manifest &manifest);

/// Reads and checks a manifest. Throws a RuntimeError that names the place in
/// the file (`$.shards[3].rows`), what is expected and what was found. Unknown
/// fields are ignored; every field is required, but for `wire_type`, `groups`
/// and `reference`.
Manifest parseManifest(const std::string &text);

/// The second half of parseManifest: checks that hold between the parts.
/// Throws a RuntimeError.
void checkManifest(const Manifest &manifest);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_MANIFEST_H
