//===- CostModelPluginOption.h - --load-cost-model-plugin -------*- C++ -*-===//

#ifndef NEUROSHARD_TRANSFORMS_COSTMODELPLUGINOPTION_H
#define NEUROSHARD_TRANSFORMS_COSTMODELPLUGINOPTION_H

namespace neuroshard {

/// Adds the option --load-cost-model-plugin=LIBRARY to the command line of a
/// program that LLVM parses, such as one with mlir::MlirOptMain(). Call it
/// before the line is read. A library that cannot be loaded ends the program
/// with an error and exit code 1.
void addCostModelPluginOption();

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_COSTMODELPLUGINOPTION_H
