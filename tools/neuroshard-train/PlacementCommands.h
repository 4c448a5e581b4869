//===- PlacementCommands.h - Commands on placement policies -----*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_PLACEMENTCOMMANDS_H
#define NEUROSHARD_TOOLS_TRAIN_PLACEMENTCOMMANDS_H

#include "CommandLine.h"

namespace neuroshard {

/// Adds `placement` and `evaluate-placement`.
void addPlacementCommands(CommandLine &line);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_PLACEMENTCOMMANDS_H
