//===- Names.cpp - The written form of enumerations ----------------------===//

#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <array>

using namespace neuroshard;

namespace {

constexpr std::array<std::string_view, 2> kTiers = {"hbm", "dram"};
constexpr std::array<std::string_view, 3> kElementTypes = {"f32", "f16",
                                                           "bf16"};
constexpr std::array<std::string_view, 2> kIdTypes = {"i32", "i64"};
constexpr std::array<std::string_view, 4> kOptimizers = {
    "sgd", "adagrad", "rowwise_adagrad", "adam"};
constexpr std::array<std::string_view, 3> kPoolings = {"sum", "mean", "none"};
constexpr std::array<std::string_view, 2> kSemantics = {"exact", "per_shard"};
constexpr std::array<std::string_view, 2> kMemoryModels = {"full",
                                                           "weights_only"};
constexpr std::array<std::string_view, 2> kTargets = {"native", "torchrec-1.9"};
constexpr std::array<std::string_view, 6> kKinds = {
    "table_wise",     "column_wise", "row_wise",
    "table_row_wise", "row_column",  "replicated"};

} // namespace

std::string_view neuroshard::toString(Tier tier) {
  return nameOf(kTiers, tier);
}
std::string_view neuroshard::toString(ElementType type) {
  return nameOf(kElementTypes, type);
}
std::string_view neuroshard::toString(IdType type) {
  return nameOf(kIdTypes, type);
}
std::string_view neuroshard::toString(OptimizerKind kind) {
  return nameOf(kOptimizers, kind);
}
std::string_view neuroshard::toString(Pooling pooling) {
  return nameOf(kPoolings, pooling);
}
std::string_view neuroshard::toString(OptimizerSemantics semantics) {
  return nameOf(kSemantics, semantics);
}
std::string_view neuroshard::toString(MemoryModel model) {
  return nameOf(kMemoryModels, model);
}
std::string_view neuroshard::toString(Target target) {
  return nameOf(kTargets, target);
}
std::string_view neuroshard::toString(ShardingKind kind) {
  return nameOf(kKinds, kind);
}

std::string neuroshard::tierError(Target target, Tier tier) {
  return "target " + std::string(toString(target)) +
         " does not run shards in tier " + std::string(toString(tier));
}

std::optional<Tier> neuroshard::parseTier(std::string_view text) {
  return valueOf<Tier>(kTiers, text);
}
std::optional<ElementType> neuroshard::parseElementType(std::string_view text) {
  return valueOf<ElementType>(kElementTypes, text);
}
std::optional<IdType> neuroshard::parseIdType(std::string_view text) {
  return valueOf<IdType>(kIdTypes, text);
}
std::optional<OptimizerKind>
neuroshard::parseOptimizerKind(std::string_view text) {
  return valueOf<OptimizerKind>(kOptimizers, text);
}
std::optional<Pooling> neuroshard::parsePooling(std::string_view text) {
  return valueOf<Pooling>(kPoolings, text);
}
std::optional<OptimizerSemantics>
neuroshard::parseOptimizerSemantics(std::string_view text) {
  return valueOf<OptimizerSemantics>(kSemantics, text);
}
std::optional<MemoryModel> neuroshard::parseMemoryModel(std::string_view text) {
  return valueOf<MemoryModel>(kMemoryModels, text);
}
std::optional<Target> neuroshard::parseTarget(std::string_view text) {
  return valueOf<Target>(kTargets, text);
}
std::optional<ShardingKind>
neuroshard::parseShardingKind(std::string_view text) {
  return valueOf<ShardingKind>(kKinds, text);
}
