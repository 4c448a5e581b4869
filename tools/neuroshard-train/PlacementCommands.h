//===- PlacementCommands.h - Commands on placement policies -----*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_PLACEMENTCOMMANDS_H
#define NEUROSHARD_TOOLS_TRAIN_PLACEMENTCOMMANDS_H

#include "neuroshard/Model/Diagnostics.h"

#include <functional>

namespace CLI {
class App;
}

namespace neuroshard {

/// Something to do once the command line is read.
using PlacementCommand = std::function<Expected<void>()>;

/// Adds `placement` and `evaluate-placement`. The one that is on the command
/// line sets `chosen`.
void addPlacementCommands(CLI::App &app, PlacementCommand &chosen);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_PLACEMENTCOMMANDS_H
