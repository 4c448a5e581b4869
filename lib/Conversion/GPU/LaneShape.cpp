//===- LaneShape.cpp - Lanes per row and columns per lane -----------------===//

#include "neuroshard/Conversion/GPU/LaneShape.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <algorithm>

namespace neuroshard {

static constexpr int64_t kLoadBytes = 16;
/// Columns that a lane holds; times one more than the rows in flight they are
/// its registers.
static constexpr int64_t kMaxColumns = 16;
/// Values of weights and states that a lane holds while gradients are added, if
/// it reads its weights at once.
static constexpr int64_t kMaxAhead = 8;
/// Values of rows in flight that a lane holds.
static constexpr int64_t kMaxInFlight = 32;

int64_t LaneShape::itemsPerBlock() const { return NSG_THREADS / lanes; }

/// The largest power of two that divides `value`, at most a warp; 0 for 0.
static int64_t getLanesFor(int64_t value) {
  return std::min(value & -value, kWarp);
}

LaneShape getLaneShape(int64_t dim, ElementType element) {
  int64_t wide = kLoadBytes / elementBytes(element);
  LaneShape shape;
  shape.lanes = dim % wide == 0 ? getLanesFor(dim / wide) : 0;
  // Narrower loads by more lanes beat a lane that reads long rows alone.
  if (shape.lanes == 0 || dim / shape.lanes > kMaxColumns)
    shape.lanes = std::max(shape.lanes, getLanesFor(dim));
  shape.rows.chunk = wide * shape.lanes;
  shape.rows.block = kMaxColumns * shape.lanes;
  shape.columns = std::min(dim / shape.lanes, kMaxColumns);
  shape.isRagged = dim % shape.rows.chunk != 0;
  if (shape.columns * elementBytes(element) <= kLoadBytes)
    shape.rows.ahead = kMaxAhead * shape.lanes;
  shape.rows.inFlight = shape.columns * 4 <= kMaxInFlight ? 4 : 2;
  return shape;
}

LaneShape getUpdateShape(int64_t dim, ElementType element) {
  LaneShape shape = getLaneShape(dim, element);
  if (shape.isRagged && shape.columns > kMaxColumns / 2) {
    shape.columns = kMaxColumns / 2;
    shape.rows.block = shape.columns * shape.lanes;
  }
  return shape;
}

} // namespace neuroshard
