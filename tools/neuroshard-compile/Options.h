//===- Options.h - Command line of neuroshard-compile ----------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_OPTIONS_H
#define NEUROSHARD_TOOLS_COMPILE_OPTIONS_H

#include "neuroshard/Conversion/GPU/GpuImages.h"
#include "neuroshard/Conversion/GPU/GpuProgramOptions.h"
#include "neuroshard/Conversion/Native/SharedLibrary.h"
#include "neuroshard/Model/Types.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/PlanPasses.h"

#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

struct CompileOptions {
  std::string input;  ///< MLIR text or bytecode; "-" is standard input.
  std::string output; ///< directory of the artifact.
  std::string planFile;
  std::string entry;
  bool training = false;
  bool reference = false;
  bool emitIR = false;
  NativeOptions native;
  /// With no architectures nothing is compiled for GPUs.
  GpuTargetOptions gpu;
  GpuProgramOptions gpuProgram;
  bool emulate = false;
  /// Whether lookups that other dialects spell out are raised, and how.
  bool raises = false;
  RaiseLookupsOptions raise;
  PlanOptions plan;
  TopologyFromGridOptions grid;
  PartitionOptions partition;
  /// Flags of the command line that have no effect on partitioned IR.
  std::vector<std::string> beforePartitioning;
};

/// Fills `options`. An exit code if the program is to end: 0 after help, 1
/// after an error, which has been printed.
std::optional<int> parseOptions(int argc, char **argv, CompileOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_OPTIONS_H
