//===- PreparedUpdate.h - The gradients of one update -----------*- C++ -*-===//
//
// What an update applies: the received gradients of one or several steps, of
// copied shards with those of all copies. Its norm can be asked for, and its
// gradients can be scaled, before it is run.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_PREPAREDUPDATE_H
#define NEUROSHARD_LIB_RUNTIME_STEP_PREPAREDUPDATE_H

#include "Exchange/CopyExchange.h"
#include "KeptGradients.h"

#include <memory>
#include <vector>

namespace neuroshard::runtime {

struct PreparedUpdate {
  KeptGradients kept; ///< what is kept of earlier steps, which others point to.
  StepGradients steps;
  std::vector<GradientPart> parts;
  CopyMessages copies;
  Buffer scaled;                      ///< gradients of parts, once scaled.
  std::unique_ptr<DistinctSums> sums; ///< once asked for.

  /// By exchange, the steps whose sums of rows are still to be added up.
  std::vector<std::vector<Partials *>> summed;
};

/// Of the kept steps and one more; this device has none kept afterwards.
PreparedUpdate gatherGradients(Device &device, std::span<Routed *const> routed,
                               std::span<Partials *const> gradients);

/// Waits for the sums of rows of all ranks, adds up those of the steps, and
/// returns those of tables that are not frozen.
std::vector<SlotSums> receiveSums(Device &device, PreparedUpdate &update);

/// The sums of gradients by row of all shards of which this device has the
/// first copy.
std::vector<SlotSums> ownSums(Device &device, PreparedUpdate &update);

/// Multiplies all gradients.
void scaleGradients(Device &device, PreparedUpdate &update, float scale);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_PREPAREDUPDATE_H
