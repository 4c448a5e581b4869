//===- GpuProgramJson.h - What a runtime has to know -----------*- C++ -*-===//
//
// <program>.gpu.json; docs/formats.md describes it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_GPU_GPUPROGRAMJSON_H
#define NEUROSHARD_CONVERSION_GPU_GPUPROGRAMJSON_H

#include "neuroshard/Conversion/GPU/GpuProgram.h"

#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

inline constexpr llvm::StringLiteral kGpuProgramSchema =
    "neuroshard.gpu_program/1";

struct GpuProgramFile {
  std::string arch; ///< "sm_90", "ptx"; "" for the emulator.
  std::string file; ///< beside the manifest.
  std::string hash; ///< XXH3 of 128 bits: runtimes load no other file.
};

/// Files of an artifact that belong to the program.
struct GpuProgramFiles {
  std::vector<GpuProgramFile> images;
  std::optional<GpuProgramFile> emulated;
  std::string moduleHash;
};

std::string writeGpuProgram(const GpuProgram &program,
                            const GpuProgramFiles &files);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_GPUPROGRAMJSON_H
