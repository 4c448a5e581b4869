//===- ModelCommands.h - Commands that train cost models --------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_MODELCOMMANDS_H
#define NEUROSHARD_TOOLS_TRAIN_MODELCOMMANDS_H

#include "CommandLine.h"

namespace neuroshard {

/// Adds `compute`, `communication`, `curve`, `evaluate` and `interval`.
void addModelCommands(CommandLine &line);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_MODELCOMMANDS_H
