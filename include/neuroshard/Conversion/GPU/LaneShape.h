//===- LaneShape.h - Lanes per row and columns per lane ---------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_LANESHAPE_H
#define NEUROSHARD_CONVERSION_GPU_LANESHAPE_H

#include "neuroshard/Conversion/Kernels/Kernels.h"

namespace neuroshard {

/// Lanes of a warp.
inline constexpr int64_t kWarp = 32;

/// A group of lanes of one warp works on a row; a warp has 32 / lanes groups.
struct LaneShape {
  /// A power of two, at most 32, that divides the dim.
  int64_t lanes = 1;
  /// Columns that a lane holds at a time.
  int64_t columns = 1;
  /// A lane's columns are not all read 16 bytes at a time.
  bool isRagged = false;
  RowShape rows;

  /// Items that a block of NSG_THREADS threads works on.
  int64_t itemsPerBlock() const;
};

/// Lanes so that each reads 16 bytes of weights at a time where the dim allows
/// it, and at most 16 columns of f32 per lane are held at once.
LaneShape getLaneShape(int64_t dim, ElementType element);

/// The same for updates, which hold more: of ragged rows a lane has at most 8
/// columns at once.
LaneShape getUpdateShape(int64_t dim, ElementType element);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_LANESHAPE_H
