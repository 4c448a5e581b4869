//===- GpuProgramJson.h - What a runtime has to know -----------*- C++ -*-===//
//
// <program>.gpu.json; docs/formats.md describes it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_GPU_GPUPROGRAMJSON_H
#define NEUROSHARD_CONVERSION_GPU_GPUPROGRAMJSON_H

#include "neuroshard/Conversion/GPU/GpuProgram.h"

#include <string>
#include <utility>
#include <vector>

namespace neuroshard {

inline constexpr llvm::StringLiteral kGpuProgramSchema =
    "neuroshard.gpu_program/1";

/// Files of an artifact that belong to the program, by architecture.
struct GpuProgramFiles {
  std::vector<std::pair<std::string, std::string>> images;
  /// The program for the emulator; empty: none.
  std::string emulated;
  std::string moduleHash;
};

std::string writeGpuProgram(const GpuProgram &program,
                            const GpuProgramFiles &files);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_GPUPROGRAMJSON_H
