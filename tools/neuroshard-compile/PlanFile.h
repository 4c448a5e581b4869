//===- PlanFile.h - The plan of --plan FILE ---------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_PLANFILE_H
#define NEUROSHARD_TOOLS_COMPILE_PLANFILE_H

#include "Options.h"

#include "mlir/IR/BuiltinOps.h"

namespace neuroshard {

/// Adds the plan of the file to a module without one. It must be for as many
/// devices as the topology of the module or of the options has.
mlir::LogicalResult addPlanFromFile(mlir::ModuleOp module,
                                    const CompileOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_PLANFILE_H
