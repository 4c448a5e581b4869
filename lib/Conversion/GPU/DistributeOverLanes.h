//===- DistributeOverLanes.h - Functions on rows for lanes ------*- C++ -*-===//
//
// The input of neuroshard-distribute-over-lanes besides the function.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_GPU_DISTRIBUTEOVERLANES_H
#define NEUROSHARD_LIB_CONVERSION_GPU_DISTRIBUTEOVERLANES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard {

/// The group of lanes that runs a function.
struct Lanes {
  /// A power of two, at most 32, that divides every vector of the function
  /// but those of one element.
  int64_t count = 1;
  /// Columns of a row: rows in flat arrays begin at multiples of it.
  int64_t columns = 1;
  /// Arguments of the function: the lane's number in its group (index), and
  /// the lanes of the warp that belong to the group (bits of an i32).
  unsigned laneArgument = 0;
  unsigned maskArgument = 0;
};

/// Writes the attributes that the pass reads.
void markForLanes(mlir::func::FuncOp func, const Lanes &lanes);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_DISTRIBUTEOVERLANES_H
