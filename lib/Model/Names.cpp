//===- Names.cpp - The written form of every enumeration ------------------===//

#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/Search.h"

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
constexpr std::array<std::string_view, 2> kObjectives = {"published", "step"};
constexpr std::array<std::string_view, 10> kAlgorithms = {
    "default", "published",   "random",     "dim",      "size",
    "lookup",  "size-lookup", "dreamshard", "torchrec", "threshold"};
constexpr std::array<std::string_view, 6> kLimits = {
    "bad input",  "device memory", "host memory",
    "constraint", "target",        "algorithm"};

template <typename Enum, size_t N>
std::string_view nameOf(const std::array<std::string_view, N> &names,
                        Enum value) {
  size_t index = static_cast<size_t>(value);
  return index < N ? names[index] : "unknown";
}

template <typename Enum, size_t N>
std::optional<Enum> valueOf(const std::array<std::string_view, N> &names,
                            std::string_view text) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == text)
      return static_cast<Enum>(i);
  return std::nullopt;
}

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
std::string_view neuroshard::toString(ObjectiveKind kind) {
  return nameOf(kObjectives, kind);
}
std::string_view neuroshard::toString(Algorithm algorithm) {
  return nameOf(kAlgorithms, algorithm);
}
std::string_view neuroshard::toString(Limit limit) {
  return nameOf(kLimits, limit);
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
std::optional<ObjectiveKind>
neuroshard::parseObjectiveKind(std::string_view text) {
  return valueOf<ObjectiveKind>(kObjectives, text);
}
std::optional<Algorithm> neuroshard::parseAlgorithm(std::string_view text) {
  return valueOf<Algorithm>(kAlgorithms, text);
}

std::span<const Algorithm> neuroshard::allAlgorithms() {
  static constexpr std::array<Algorithm, 10> kAll = {
      Algorithm::Default,    Algorithm::Published,  Algorithm::Random,
      Algorithm::Dim,        Algorithm::Size,       Algorithm::Lookup,
      Algorithm::SizeLookup, Algorithm::DreamShard, Algorithm::TorchRec,
      Algorithm::Threshold};
  return kAll;
}
