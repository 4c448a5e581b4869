//===- LaneShape.h - Lanes per row and columns per lane ---------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_LANESHAPE_H
#define NEUROSHARD_CONVERSION_GPU_LANESHAPE_H

#include "neuroshard/Conversion/Kernels/HostKernels.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

namespace neuroshard {

/// Lanes of a warp.
inline constexpr int64_t kWarp = NSG_WARP;

/// A group of lanes of one warp works on a row; a warp has 32 / lanes groups.
struct LaneShape {
  /// A power of two, at most 32. Those behind the end of a row are idle.
  int64_t lanes = 1;
  /// Columns that a lane reads at a time, at most 16 bytes; divides the dim.
  int64_t perLoad = 1;
  /// Columns that a lane holds at a time.
  int64_t columns = 1;
  RowVectors rows;

  /// Items that a block of NSG_THREADS threads works on.
  int64_t itemsPerBlock() const;
};

/// Each lane reads 16 bytes of weights at a time if they divide the row, else
/// the largest power of two that does, and holds at most 16 columns at once.
LaneShape getLaneShape(int64_t dim, ElementType element);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_LANESHAPE_H
