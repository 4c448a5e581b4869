//===- InitAll.h - Everything a NeuroShard tool registers ------*- C++ -*-===//
//
// The one list of dialects, passes and pipelines; every tool uses it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_INITALL_H
#define NEUROSHARD_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace neuroshard {

/// Our dialect, MLIR's dialects and what they need to be lowered.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Our passes and pipelines, and MLIR's.
void registerAllPasses();

/// Our passes and pipelines alone, for a program that has registered MLIR's.
void registerOwnPasses();

} // namespace neuroshard

#endif // NEUROSHARD_INITALL_H
