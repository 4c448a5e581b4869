//===- SearchTasks.h - Generated tasks for searches -------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_SUPPORT_SEARCHTASKS_H
#define NEUROSHARD_TEST_SUPPORT_SEARCHTASKS_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Settings of random tasks. Tables resemble those of the reference tasks: rows
/// log-uniform in 100 ... 12 million, dims of 4, 8, ..., 128, poolings
/// log-normal around 4.4; memory counts weights alone.
struct TaskSettings {
  int minTables = 10, maxTables = 40;
  int minDevices = 8, maxDevices = 16;
  /// Weights fill this share of the devices' memory. No table is larger than
  /// 90 % of a device, or 1.5 mean tables if that is more.
  double fill = 0.6;
  /// Standard deviation of log pooling.
  double poolingSpread = 0.95;
};

/// The same task for the same seed, everywhere.
ShardingProblem randomTask(const TaskSettings &settings, uint64_t seed);

/// Factors by which statistics drift: log-normal numbers with this standard
/// deviation of the logarithm. The same for the same seed, everywhere.
std::vector<double> driftFactors(size_t count, double spread, uint64_t seed);

struct KnownTask {
  ShardingProblem problem;
  /// A valid plan.
  ShardingPlan plan;
};

/// A task made from a plan: pieces of random tables are put on the emptiest
/// devices until each is full to `fill`. Tables may be larger than a device.
KnownTask taskFromPlan(double fill, uint64_t seed);

} // namespace neuroshard

#endif // NEUROSHARD_TEST_SUPPORT_SEARCHTASKS_H
