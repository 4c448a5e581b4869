//===- ModelEnums.h - Names of Model's enumerations in the IR --*- C++ -*-===//
//
// What TableGen's code calls for the enumerations of ModelEnums.td, by the
// names that it expects. It would generate these functions, but only together
// with enumerations of its own.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_MODELENUMS_H
#define NEUROSHARD_DIALECT_MODELENUMS_H

#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/Types.h"

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace neuroshard {

/// "sum", "mean" or "unpooled".
llvm::StringRef stringifyPooling(Pooling pooling);
std::optional<Pooling> symbolizePooling(llvm::StringRef name);

llvm::StringRef stringifyOptimizerKind(OptimizerKind kind);
std::optional<OptimizerKind> symbolizeOptimizerKind(llvm::StringRef name);

llvm::StringRef stringifyOptimizerSemantics(OptimizerSemantics semantics);
std::optional<OptimizerSemantics>
symbolizeOptimizerSemantics(llvm::StringRef name);

llvm::StringRef stringifyWeightDecayMode(WeightDecayMode mode);
std::optional<WeightDecayMode> symbolizeWeightDecayMode(llvm::StringRef name);

llvm::StringRef stringifyTier(Tier tier);
std::optional<Tier> symbolizeTier(llvm::StringRef name);

llvm::StringRef stringifyCachePolicy(CachePolicy policy);
std::optional<CachePolicy> symbolizeCachePolicy(llvm::StringRef name);

llvm::StringRef stringifyRoute(Route route);
std::optional<Route> symbolizeRoute(llvm::StringRef name);

} // namespace neuroshard

#endif // NEUROSHARD_DIALECT_MODELENUMS_H
