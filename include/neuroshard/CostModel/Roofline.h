//===- Roofline.h - Closed-form cost from bytes and rates -------*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_ROOFLINE_H
#define NEUROSHARD_COSTMODEL_ROOFLINE_H

#include "neuroshard/Planner/CostModel.h"

#include <memory>

namespace neuroshard {

/// Compute: bytes through device memory and cache over the rates of the device
/// class, plus launch times. Communication: per level of the topology, latency
/// + bytes / bandwidth. Formulas in docs/planner.md.
std::unique_ptr<CostModel> makeRooflineModel();

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_ROOFLINE_H
