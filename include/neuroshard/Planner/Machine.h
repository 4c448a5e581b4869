//===- Machine.h - Measured steps of a machine ------------------*- C++ -*-===//
///
/// \file
/// What steps take on the machine that trains, over what a cost model predicts
/// for them: `neuroshard calibrate` measures it (docs/calibrate.md).
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PLANNER_MACHINE_H
#define NEUROSHARD_PLANNER_MACHINE_H

#include "neuroshard/Model/Target.h"
#include "neuroshard/Planner/PredictionInterval.h"

#include <string>

namespace neuroshard {

/// A predicted time becomes `scale` times as long and fixedMs longer; 0, which
/// is nothing to do, stays 0.
struct TimeCorrection {
  double scale = 1;
  double fixedMs = 0;

  double operator()(double ms) const {
    return ms > 0 ? scale * ms + fixedMs : 0;
  }
};

struct Machine {
  /// By name, as makeCostModel() takes it.
  std::string costModel;
  /// What ran the steps.
  Target target = Target::Native;
  std::string deviceClass;
  /// That were measured at once, and the hosts or nodes they were in.
  int devices = 1;
  int groups = 1;
  TimeCorrection input, forward, forwardCommunication, backwardCommunication,
      backward;
  /// What a step takes beside these, whatever the plan.
  double fixedStepMs = 0;
  /// Of steps.
  PredictionInterval interval;
};

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_MACHINE_H
