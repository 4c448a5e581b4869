//===- Options.h - Command line of neuroshard-run ---------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_OPTIONS_H
#define NEUROSHARD_TOOLS_RUN_OPTIONS_H

#include "CommandLine.h"
#include "Drive.h"

namespace neuroshard::run {

/// Adds the options that set `options`.
void addOptions(Command &program, DriveOptions &options);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_OPTIONS_H
