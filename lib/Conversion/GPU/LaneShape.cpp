//===- LaneShape.cpp - Lanes per row and columns per lane -----------------===//

#include "neuroshard/Conversion/GPU/LaneShape.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <algorithm>

namespace neuroshard {

static constexpr int64_t kLoadBytes = 16;
/// Columns of a row per lane. A lane needs this many registers for the sum and
/// for each row in flight.
static constexpr int64_t kMaxColumns = 16;
/// Values of weights and states that a lane reads before it adds gradients, if
/// its weights are one load.
static constexpr int64_t kMaxAhead = 8;
/// Values of all rows in flight per lane.
static constexpr int64_t kMaxInFlight = 32;

int64_t LaneShape::itemsPerBlock() const { return NSG_THREADS / lanes; }

/// The largest power of two that divides `value`, at most kWarp; 0 for 0.
static int64_t getLanesFor(int64_t value) {
  return std::min(value & -value, kWarp);
}

LaneShape getLaneShape(int64_t dim, ElementType element) {
  int64_t wide = kLoadBytes / elementBytes(element);
  LaneShape shape;
  shape.lanes = dim % wide == 0 ? getLanesFor(dim / wide) : 0;
  // More lanes with narrower loads beat few lanes with many columns each.
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
