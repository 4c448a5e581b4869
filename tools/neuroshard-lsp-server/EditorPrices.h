//===- EditorPrices.h - Prices of plans in an editor -----------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_LSP_SERVER_EDITORPRICES_H
#define NEUROSHARD_TOOLS_LSP_SERVER_EDITORPRICES_H

#include "mlir/IR/DialectRegistry.h"

namespace neuroshard {

/// Makes each verification of a module emit what its plans cost, as remarks,
/// which MLIR's server shows as information: pricePlan() with the cost model
/// "auto". With `inHovers` all are marked by forHover(), and the first of each
/// plan is emitted without a mark, too. A plan that cannot be priced gets a
/// remark that says why.
void addEditorPrices(mlir::DialectRegistry &registry, bool inHovers);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_LSP_SERVER_EDITORPRICES_H
