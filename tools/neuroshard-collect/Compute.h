//===- Compute.h - neuroshard-collect compute -------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COLLECT_COMPUTE_H
#define NEUROSHARD_TOOLS_COLLECT_COMPUTE_H

#include "neuroshard/Collect/Collector.h"

#include <CLI/CLI.hpp>

namespace neuroshard {

/// Adds the subcommand; `options` must outlive the parsing.
CLI::App *addComputeCommand(CLI::App &app, CollectOptions &options);

/// Returns the exit code.
int runCompute(const CollectOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COLLECT_COMPUTE_H
