//===- GpuProgram.h - A device program for GPUs ----------------*- C++ -*-===//
//
// The GPU module of a device program, and what a runtime has to know of it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_GPU_GPUPROGRAM_H
#define NEUROSHARD_CONVERSION_GPU_GPUPROGRAM_H

#include "neuroshard/Conversion/GPU/GpuProgramOptions.h"
#include "neuroshard/Conversion/Kernels/ProgramTable.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <vector>

namespace neuroshard {

/// Bodies of one lookup in the kernels; -1: none. Devices that share a program
/// may sum or average, so there are bodies for both, and for bags of one length
/// that need no offsets.
struct GpuLookup {
  LookupSpec spec;
  int64_t variant = -1;
  int64_t meanVariant = -1;
  int64_t fixedVariant = -1;
  int64_t fixedMeanVariant = -1;
  int64_t itemsPerBlock = 0;
  int64_t gradientVariant = -1;
  int64_t gradientItemsPerBlock = 0;
};

struct GpuSlot {
  SlotSpec spec;
  int64_t updateVariant = -1;
  int64_t reduceVariant = -1;
  int64_t applyVariant = -1;
  int64_t partialVariant = -1;
  /// Of a slot that is updated without a sort; it has none of the others.
  int64_t smallSumsVariant = -1;
  int64_t smallUpdateVariant = -1;
};

/// Slots and lookups in the order of the manifest.
struct GpuProgram {
  std::vector<GpuLookup> lookups;
  std::vector<GpuSlot> slots;
  std::vector<llvm::StringRef> kernels;
  /// Type of the results.
  ElementType output = ElementType::F32;
};

/// Emits the module `neuroshard` at the end of `parent`, with the kernels of
/// RuntimeCuda/GpuKernelABI.h that the program needs. An error is reported at
/// `parent`.
mlir::FailureOr<GpuProgram> buildGpuModule(mlir::ModuleOp parent,
                                           const ProgramSpec &program,
                                           const GpuProgramOptions &options);

/// Registers the dialects that GPU modules are made of.
void registerGpuDialects(mlir::DialectRegistry &registry);

inline constexpr llvm::StringLiteral kGpuModuleName = "neuroshard";

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_GPU_GPUPROGRAM_H
