//===- ProgramTable.h - The table of a device program's kernels *- C++ -*-===//
//
// The exported symbol `neuroshard_program` of Runtime/KernelABI.h, and the
// kernels of one device program.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_KERNELS_PROGRAMTABLE_H
#define NEUROSHARD_CONVERSION_KERNELS_PROGRAMTABLE_H

#include "neuroshard/Conversion/Kernels/KernelSpec.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace neuroshard {

/// A slot: the local shard of a table.
struct SlotSpec {
  /// Columns of the shard.
  int64_t dim = 0;
  ElementType element = ElementType::F32;
  /// Absent in an inference program.
  std::optional<Optimizer> optimizer;
  /// Columns of the whole table; 0 stands for `dim`.
  int64_t tableDim = 0;
  /// Some lookup of the slot is weighted: the update reads sample weights.
  bool weighted = false;
  /// Exact row-wise optimizer over column shards: reduce and apply kernels
  /// instead of one update.
  bool twoPhase = false;
  /// Whether the slot is a copy of a replicated table on some device.
  bool replicated = false;
};

/// A lookup on one slot.
struct LookupSpec {
  /// Index into ProgramSpec::slots.
  int64_t slot = 0;
  IdType id = IdType::I64;
  bool pooled = true;
  bool weighted = false;
};

/// One device program: slots and lookups in the order of the manifest.
struct ProgramSpec {
  std::vector<SlotSpec> slots;
  std::vector<LookupSpec> lookups;
  /// Whether gradients of sample weights are computed, also where no table is
  /// trained. Programs for CPUs can always do that.
  bool hasWeightGradients = false;
};

/// Emits the program's kernels (each once) and the constant
/// `neuroshard_program` that points to them. Errors are reported at `module`.
mlir::LogicalResult buildProgramTable(mlir::ModuleOp module,
                                      const ProgramSpec &program);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_PROGRAMTABLE_H
