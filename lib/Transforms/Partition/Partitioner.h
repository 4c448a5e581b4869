//===- Partitioner.h - SPMD step functions ---------------------*- C++ -*-===//
//
// The rewriting of the pass neuroshard-partition.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PARTITION_PARTITIONER_H
#define NEUROSHARD_LIB_TRANSFORMS_PARTITION_PARTITIONER_H

#include "Planning/PlacedTables.h"
#include "neuroshard/Transforms/StepFunctions.h"

#include "llvm/ADT/SetVector.h"

namespace neuroshard {

/// One jagged input of start, with all lookups that read it.
struct Exchange {
  /// Argument of start.
  unsigned input;
  ir::JaggedType type;
  /// Set when the op is made.
  mlir::FlatSymbolRefAttr name;
  llvm::SmallVector<mlir::Attribute> lookups;
  llvm::SmallVector<mlir::Type> results;
  /// Positions of the results among those of wait, which are those of their
  /// gradients in update.
  llvm::SmallVector<unsigned> positions;
  /// The update computes the gradients of its sample weights.
  bool weightsGradient = false;
  /// The update changes a table that it reads.
  bool trained = false;

  bool needsGradients() const { return weightsGradient || trained; }
};

/// Rewrites the step functions and their callers.
class Partitioner {
public:
  explicit Partitioner(StepFunctions &step) : step(step) {}

  /// Finds exchanges and callers; changes nothing.
  mlir::LogicalResult collect(int64_t numDevices);
  /// Refuses reductions over the samples of pooled lookups' results.
  mlir::LogicalResult checkReductions(int64_t numDevices);
  /// Adds the exchange ops after `plan`.
  void createExchanges(ir::PlanOp plan);
  void partitionStart();
  /// Adds the function that looks rows up, between start and wait.
  void addLookup();
  void partitionWait();
  /// Adds a wait with all results in one tensor, if their types allow it.
  void addJoinedWait();
  /// Splits the update in two: sending gradients, and what waits for them.
  void partitionUpdate();
  void partitionCallers();

  llvm::ArrayRef<Exchange> getExchanges() const { return exchanges; }

private:
  mlir::LogicalResult collectInputs();
  mlir::LogicalResult collectLookups();
  mlir::LogicalResult collectUpdate();
  mlir::LogicalResult collectCallers(mlir::func::FuncOp callee);
  mlir::LogicalResult checkBatch(int64_t numDevices);
  /// The lookup that a result of wait comes from, and the ids that it reads.
  std::optional<std::pair<ir::LookupAttr, unsigned>> trace(mlir::Value result);
  Exchange *exchangeOf(unsigned input);
  /// Exchanges of which the context keeps the ids, after the routed ones: the
  /// update needs their number.
  llvm::SmallVector<Exchange *> exchangesWithIds();
  /// Adds the function that sends gradients, with the arguments of the update
  /// that are not its last two, and its results.
  mlir::func::FuncOp addGradients();

  StepFunctions &step;
  mlir::func::FuncOp lookup;
  llvm::SmallVector<Exchange> exchanges;
  /// For each result of update, the exchange whose weights it is the gradient
  /// of.
  llvm::SmallVector<Exchange *> weightsResults;
  llvm::SetVector<mlir::func::FuncOp> callers;
};

/// Adds one device program for each group of devices whose slots and lookups
/// have the same structure. Returns the number of programs and of slots.
std::pair<unsigned, unsigned>
createDevicePrograms(const PlacedTables &placement,
                     llvm::ArrayRef<Exchange> exchanges, bool training);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PARTITION_PARTITIONER_H
