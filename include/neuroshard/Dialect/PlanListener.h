//===- PlanListener.h - Callback for each verified plan ---------*- C++ -*-===//

#ifndef NEUROSHARD_DIALECT_PLANLISTENER_H
#define NEUROSHARD_DIALECT_PLANLISTENER_H

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/DialectInterface.h"

namespace neuroshard::ir {

/// An interface of the dialect that a program may add by an extension of its
/// registry, such as an editor's server, which has no other moment to look at
/// a module.
class PlanListener : public mlir::DialectInterface::Base<PlanListener> {
public:
  PlanListener(mlir::Dialect *dialect) : Base(dialect) {}

  /// Called while a module's uses of symbols are verified, for each plan whose
  /// topology exists. All ops of the module are verified then, but perhaps not
  /// the symbols that they use.
  virtual void planVerified(PlanOp plan) const = 0;
};

} // namespace neuroshard::ir

#endif // NEUROSHARD_DIALECT_PLANLISTENER_H
