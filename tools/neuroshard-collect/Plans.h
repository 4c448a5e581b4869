//===- Plans.h - neuroshard-collect plans -----------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COLLECT_PLANS_H
#define NEUROSHARD_TOOLS_COLLECT_PLANS_H

#include "neuroshard/Collect/PlanMeasurement.h"

#include <CLI/CLI.hpp>

namespace neuroshard {

struct PlansSettings {
  PlanMeasurementOptions options;
  std::string costModel;
  std::string path;
};

/// Adds the subcommand; `settings` must outlive the parsing.
CLI::App *addPlansCommand(CLI::App &app, PlansSettings &settings);

/// Returns the exit code.
int runPlans(const PlansSettings &settings);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COLLECT_PLANS_H
