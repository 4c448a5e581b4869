//===- Bench.h - The benchmarks, one subcommand each ------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_BENCH_H
#define NEUROSHARD_TOOLS_BENCH_BENCH_H

#include "CommandLine.h"

namespace neuroshard {

// Each adds its subcommand.

/// Head evaluations of a neural compute model per second.
void addHeadsBenchmark(CommandLine &line);

/// Speed of lookups and updates on the CPU, beside that of others.
void addKernelsBenchmark(CommandLine &line);

/// TorchRec's planner beside ours.
void addPlannersBenchmark(CommandLine &line);

/// Measured step times of whole plans on ranks of torch.distributed.
void addPlansBenchmark(CommandLine &line);

/// Speed of the searches and quality of their plans.
void addSearchBenchmark(CommandLine &line);

/// Time of a training step on ranks of torch.distributed, beside TorchRec's.
void addStepBenchmark(CommandLine &line);

/// Writes a compute model with random weights.
void addModelCommand(CommandLine &line);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_BENCH_BENCH_H
