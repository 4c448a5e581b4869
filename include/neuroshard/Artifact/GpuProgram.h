//===- GpuProgram.h - What <program>.gpu.json says -------------*- C++ -*-===//
//
// The kernels of a device program: their images, and which bodies of them
// serve which lookup and slot ("neuroshard.gpu_program/1").
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_GPUPROGRAM_H
#define NEUROSHARD_ARTIFACT_GPUPROGRAM_H

#include "neuroshard/Artifact/Manifest.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard::cuda {

struct GpuImage {
  std::string arch; ///< "sm_90" or "ptx"; "" for the emulator's.
  std::string file; ///< beside the manifest.
  std::string hash; ///< of the file: hashOf.
};

struct GpuLookup {
  int32_t slot = 0;
  int32_t idBytes = 8;
  bool pooled = true;
  /// Divides by the ids of the bag; set by bindMeans. Not where rows of the
  /// table are elsewhere, too: partial sums are divided after they are added.
  bool mean = false;
  bool weighted = false;
  runtime::ElementType output = runtime::ElementType::F32;
  /// Of nsg_lookup: sums and means of bags with offsets, and of fixed bags. Ids
  /// that are not pooled have `variant` alone.
  int32_t variant = 0;
  int32_t meanVariant = -1;
  int32_t fixedVariant = -1;
  int32_t fixedMeanVariant = -1;
  int32_t itemsPerBlock = 1;
  int32_t gradientVariant = -1; ///< of nsg_weight_gradient.
  int32_t gradientItemsPerBlock = 1;

  /// The body of nsg_lookup for bags with offsets or of a fixed size, or for
  /// ids; -1 if there is none.
  int32_t variantFor(bool fixed) const {
    if (fixed)
      return mean ? fixedMeanVariant : fixedVariant;
    return mean ? meanVariant : variant;
  }
};

struct GpuSlot {
  int64_t dim = 0;
  runtime::ElementType element = runtime::ElementType::F32;
  int32_t elementStates = 0;
  int32_t rowStates = 0;
  bool twoPhase = false;
  int32_t updateVariant = -1;
  int32_t reduceVariant = -1;
  int32_t applyVariant = -1;
  int32_t partialVariant = -1;
  /// Of a slot that is updated without a sort; it has none of the others.
  int32_t smallSumsVariant = -1;
  int32_t smallUpdateVariant = -1;

  bool isSmall() const { return smallUpdateVariant >= 0; }
  bool isSorted() const { return updateVariant >= 0 || reduceVariant >= 0; }
  bool trainable() const { return isSmall() || isSorted(); }
};

struct GpuProgram {
  std::string module; ///< hash of the gpu.module.
  std::vector<GpuImage> images;
  std::optional<GpuImage> emulated; ///< for the emulator.
  std::vector<std::string> kernels;
  std::vector<GpuLookup> lookups;
  std::vector<GpuSlot> slots;

  bool hasKernel(const std::string &name) const;
  /// Some lookup is weighted or a mean: gradients have factors.
  bool hasFactors() const;
};

/// Reads a document. Throws a RuntimeError with the place in it, what is
/// expected and what was found.
GpuProgram parseGpuProgram(const std::string &text);

/// Throws a RuntimeError if the program does not fit the manifest's binding of
/// `device`.
void checkGpuProgram(const GpuProgram &program,
                     const runtime::Manifest &manifest, int32_t device);

/// Sets GpuLookup::mean. Expects a program that checkGpuProgram accepts.
void bindMeans(GpuProgram &program, const runtime::Manifest &manifest,
               int32_t device);

/// The image for a GPU of `capability` (90 for sm_90): machine code of the same
/// major version and at most its minor one, the newest of these; else PTX.
/// Throws a RuntimeError with what there is if none fits.
const GpuImage &chooseImage(const GpuProgram &program, int capability);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_ARTIFACT_GPUPROGRAM_H
