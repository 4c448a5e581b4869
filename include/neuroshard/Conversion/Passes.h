//===- Passes.h - Conversions out of the dialect ---------------*- C++ -*-===//
//
// Generated from Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_PASSES_H
#define NEUROSHARD_CONVERSION_PASSES_H

#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Model/Types.h"

#include "mlir/Pass/Pass.h"

namespace neuroshard {

#define GEN_PASS_DECL
#include "neuroshard/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "neuroshard/Conversion/Passes.h.inc"

/// Arguments that neuroshard-lower-reference adds: the weights of the table
/// that the attribute names, and arrays of its optimizer state.
inline constexpr llvm::StringLiteral kWeightsArgumentAttr =
    "neuroshard.weights";
inline constexpr llvm::StringLiteral kStateArgumentAttr = "neuroshard.state";

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_PASSES_H
