//===- Sets.h - neuroshard-collect sets -------------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COLLECT_SETS_H
#define NEUROSHARD_TOOLS_COLLECT_SETS_H

#include "neuroshard/Collect/SetList.h"

#include <CLI/CLI.hpp>

namespace neuroshard {

CLI::App *addSetsCommand(CLI::App &app, SetListOptions &options);

/// The exit code.
int runSets(const SetListOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COLLECT_SETS_H
