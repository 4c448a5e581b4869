//===- Bench.h - The benchmarks, one subcommand each ------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_BENCH_H
#define NEUROSHARD_TOOLS_BENCH_BENCH_H

#include <CLI/CLI.hpp>

namespace neuroshard {

/// Each adds its subcommand to `app`, to be run by its callback. A callback
/// that fails throws CLI::RuntimeError after saying why on standard error.

/// Head evaluations of a neural compute model per second.
void addHeadsBenchmark(CLI::App &app);

/// Speed of lookups and updates on the CPU, beside that of others.
void addKernelsBenchmark(CLI::App &app);

/// TorchRec's planner beside ours.
void addPlannersBenchmark(CLI::App &app);

/// Measured step times of whole plans on ranks of torch.distributed.
void addPlansBenchmark(CLI::App &app);

/// Speed of the searches and quality of their plans.
void addSearchBenchmark(CLI::App &app);

/// Writes a compute model with random weights.
void addModelCommand(CLI::App &app);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_BENCH_BENCH_H
