//===- Commands.h - Commands of neuroshard-collect --------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COLLECT_COMMANDS_H
#define NEUROSHARD_TOOLS_COLLECT_COMMANDS_H

#include "CommandLine.h"

namespace neuroshard {

/// `compute`: measures random shard sets.
void addComputeCommand(CommandLine &line);

/// `plans`: measures plans of random tasks beside their predicted costs.
void addPlansCommand(CommandLine &line);

/// `sets`: lists random shard sets for another machine to measure.
void addSetsCommand(CommandLine &line);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COLLECT_COMMANDS_H
