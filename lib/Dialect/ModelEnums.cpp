//===- ModelEnums.cpp - Names of Model's enumerations in the IR -----------===//

#include "neuroshard/Dialect/ModelEnums.h"

using namespace neuroshard;

/// Model's name for no pooling is that of a field of JSON; a keyword before a
/// table says what the lookup is.
static constexpr llvm::StringLiteral kUnpooled = "unpooled";

llvm::StringRef neuroshard::stringifyPooling(Pooling pooling) {
  if (pooling == Pooling::None)
    return kUnpooled;
  return toString(pooling);
}

std::optional<Pooling> neuroshard::symbolizePooling(llvm::StringRef name) {
  for (Pooling pooling : {Pooling::Sum, Pooling::Mean, Pooling::None})
    if (stringifyPooling(pooling) == name)
      return pooling;
  return std::nullopt;
}

llvm::StringRef neuroshard::stringifyOptimizerKind(OptimizerKind kind) {
  return toString(kind);
}

std::optional<OptimizerKind>
neuroshard::symbolizeOptimizerKind(llvm::StringRef name) {
  return parseOptimizerKind(name);
}

llvm::StringRef
neuroshard::stringifyOptimizerSemantics(OptimizerSemantics semantics) {
  return toString(semantics);
}

std::optional<OptimizerSemantics>
neuroshard::symbolizeOptimizerSemantics(llvm::StringRef name) {
  return parseOptimizerSemantics(name);
}

llvm::StringRef neuroshard::stringifyWeightDecayMode(WeightDecayMode mode) {
  return toString(mode);
}

std::optional<WeightDecayMode>
neuroshard::symbolizeWeightDecayMode(llvm::StringRef name) {
  return parseWeightDecayMode(name);
}

llvm::StringRef neuroshard::stringifyTier(Tier tier) { return toString(tier); }

std::optional<Tier> neuroshard::symbolizeTier(llvm::StringRef name) {
  return parseTier(name);
}

llvm::StringRef neuroshard::stringifyCachePolicy(CachePolicy policy) {
  return toString(policy);
}

std::optional<CachePolicy>
neuroshard::symbolizeCachePolicy(llvm::StringRef name) {
  return parseCachePolicy(name);
}

llvm::StringRef neuroshard::stringifyRoute(Route route) {
  return toString(route);
}

std::optional<Route> neuroshard::symbolizeRoute(llvm::StringRef name) {
  return parseRoute(name);
}
