//===- CalibratedModel.h - A cost model corrected by a machine --*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_CALIBRATEDMODEL_H
#define NEUROSHARD_COSTMODEL_CALIBRATEDMODEL_H

#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Machine.h"

#include <memory>

namespace neuroshard {

/// `model`, whose predictions are those that the machine's were measured
/// beside, as the machine corrects them.
std::unique_ptr<CostModel> calibrate(std::unique_ptr<CostModel> model,
                                     const Machine &machine, std::string name);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_CALIBRATEDMODEL_H
