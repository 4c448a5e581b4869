//===- GpuImages.h - GPU modules to images that drivers load ---*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_GPUIMAGES_H
#define NEUROSHARD_CONVERSION_GPU_GPUIMAGES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace neuroshard {

/// The SHA-1 of the text of the module of a simplified program, in hexadecimal.
std::string hashOfGpuModule(mlir::ModuleOp module);

struct GpuImage {
  /// "sm_90", or "ptx".
  std::string arch;
  std::string bytes;
};

struct GpuTargetOptions {
  /// Architectures to assemble for, such as "sm_80". PTX is for the lowest of
  /// them; newer ones can run it.
  std::vector<std::string> archs;
  /// Folder of a CUDA toolkit, with bin/ptxas; by default the one that
  /// NeuroShard was built with.
  std::string toolkit;
  /// File for a module and the passes that fail on it; see RunPasses.h.
  std::string crashReproducer;
};

/// A cubin for each architecture, and PTX. `module` holds the simplified GPU
/// module and is not changed. Errors are reported at `module`.
mlir::FailureOr<std::vector<GpuImage>>
compileGpuImages(mlir::ModuleOp module, const GpuTargetOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_GPUIMAGES_H
