//===- LaneShape.cpp - Lanes per row and columns per lane -----------------===//

#include "neuroshard/Conversion/GPU/LaneShape.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

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

LaneShape getLaneShape(int64_t dim, ElementType element) {
  LaneShape shape;
  shape.perLoad = std::min(dim & -dim, kLoadBytes / elementBytes(element));
  int64_t loads = dim / shape.perLoad;
  shape.lanes = std::min<int64_t>(
      static_cast<int64_t>(llvm::bit_ceil(static_cast<uint64_t>(loads))),
      kWarp);
  int64_t ofLane = llvm::divideCeilSigned(loads, shape.lanes) * shape.perLoad;
  shape.columns = std::min(ofLane, kMaxColumns);
  shape.rows.chunk = shape.perLoad * shape.lanes;
  shape.rows.block = kMaxColumns * shape.lanes;
  shape.rows.isMasked = true;
  if (shape.columns == shape.perLoad)
    shape.rows.ahead = kMaxAhead * shape.lanes;
  shape.rows.inFlight = shape.columns * 4 <= kMaxInFlight ? 4 : 2;
  return shape;
}

} // namespace neuroshard
