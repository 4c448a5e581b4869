//===- EditorPrices.h - Prices of plans in an editor -----------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_LSP_SERVER_EDITORPRICES_H
#define NEUROSHARD_TOOLS_LSP_SERVER_EDITORPRICES_H

#include "mlir/IR/DialectRegistry.h"

namespace neuroshard {

/// Makes each verification of a module emit what its plans cost, as remarks,
/// which MLIR's server shows as information: pricePlan() with the cost model
/// "auto". A plan that cannot be priced gets a remark that says why.
void addEditorPrices(mlir::DialectRegistry &registry);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_LSP_SERVER_EDITORPRICES_H
