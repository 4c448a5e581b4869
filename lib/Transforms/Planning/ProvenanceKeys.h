//===- ProvenanceKeys.h - Keys of the provenance attribute ------*- C++ -*-===//
//
// Absent entries have their defaults.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_PROVENANCEKEYS_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_PROVENANCEKEYS_H

#include "llvm/ADT/StringRef.h"

namespace neuroshard::provenance_keys {

inline constexpr llvm::StringLiteral kAlgorithm = "algorithm";
inline constexpr llvm::StringLiteral kObjective = "objective";
inline constexpr llvm::StringLiteral kCostModel = "cost_model";
inline constexpr llvm::StringLiteral kFingerprint = "table_fingerprint";
inline constexpr llvm::StringLiteral kPredictedCostMs = "predicted_cost_ms";
inline constexpr llvm::StringLiteral kLowerBoundMs = "lower_bound_ms";
inline constexpr llvm::StringLiteral kSeed = "seed";
inline constexpr llvm::StringLiteral kSettings = "settings";

} // namespace neuroshard::provenance_keys

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_PROVENANCEKEYS_H
