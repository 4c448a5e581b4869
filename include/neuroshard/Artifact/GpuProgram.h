//===- GpuProgram.h - Record of a device program for GPUs ------*- C++ -*-===//
//
// The contents of <program>.gpu.json: the images of a program's kernels, and
// which variants of the kernels serve which lookup and slot. This is the one
// struct, writer and reader of the schema; docs/compile.md describes it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_GPUPROGRAM_H
#define NEUROSHARD_ARTIFACT_GPUPROGRAM_H

#include "neuroshard/Model/Types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

struct Manifest;

struct GpuImageFile {
  std::string arch; ///< "sm_90" or "ptx"; "" for the emulator's.
  std::string file; ///< beside the manifest.
};

/// Variants of the kernels for one lookup; -1: none. Devices that share a
/// program may sum or average, so there are variants for both, and for bags of
/// one length that need no offsets.
struct GpuLookup {
  int32_t slot = 0;
  int32_t idBytes = 8;
  bool pooled = true;
  /// Divides by the ids of the bag. Not part of the file: bindMeans sets it,
  /// from the manifest. Not where rows of the
  /// table are elsewhere, too: partial sums are divided after they are added.
  bool mean = false;
  bool weighted = false;
  ElementType output = ElementType::F32;
  /// Of nsg_lookup: sums and means of bags with offsets, and of fixed bags. Ids
  /// that are not pooled have `variant` alone.
  int32_t variant = -1;
  int32_t meanVariant = -1;
  int32_t fixedVariant = -1;
  int32_t fixedMeanVariant = -1;
  int32_t itemsPerBlock = 0;
  int32_t gradientVariant = -1; ///< of nsg_weight_gradient.
  int32_t gradientItemsPerBlock = 0;

  /// The body of nsg_lookup for bags with offsets or of a fixed size, or for
  /// ids; -1 if there is none.
  int32_t variantFor(bool fixed) const {
    if (fixed)
      return mean ? fixedMeanVariant : fixedVariant;
    return mean ? meanVariant : variant;
  }
};

/// Variants of the kernels for one slot; -1: none.
struct GpuSlot {
  int64_t dim = 0;
  ElementType element = ElementType::F32;
  int32_t elementStates = 0;
  int32_t rowStates = 0;
  bool twoPhase = false;
  int32_t updateVariant = -1;
  int32_t reduceVariant = -1;
  int32_t applyVariant = -1;
  int32_t partialVariant = -1;
  /// Of a replicated table, beside the others: of nsg_reduce, for sums of all
  /// its rows, and of nsg_update_by_sums.
  int32_t rowSumsVariant = -1;
  int32_t sumsUpdateVariant = -1;
  /// Of a trained slot, beside the others: of nsg_reduce, for the sums of
  /// distinct rows that copies exchange, or of which a norm is taken.
  int32_t distinctSumsVariant = -1;

  /// Whether some kernel keeps the sums of its distinct rows.
  bool keepsSums() const { return twoPhase || distinctSumsVariant >= 0; }
  bool trainable() const { return updateVariant >= 0 || reduceVariant >= 0; }
};

/// Slots and lookups are in the order of the manifest's bindings.
struct GpuProgram {
  std::string module; ///< hash of the gpu.module.
  std::vector<GpuImageFile> images;
  std::optional<GpuImageFile> emulated; ///< for the emulator.
  std::vector<std::string> kernels;
  std::vector<GpuLookup> lookups;
  std::vector<GpuSlot> slots;

  bool hasKernel(const std::string &name) const;
  /// Some lookup is weighted or a mean: gradients have factors.
  bool hasFactors() const;
};

/// The kernels that all programs have: they move the values of an exchange.
inline constexpr const char *kRoutingKernels[] = {
    "nsg_move_rows",     "nsg_move_scaled_rows", "nsg_add_up",
    "nsg_check_offsets", "nsg_trust_offsets",    "nsg_count_bags",
    "nsg_pack_ids",      "nsg_add_values",       "nsg_divide_values"};

/// The kernels on runs have one kernel for each body.
inline constexpr char kUpdateKernel[] = "nsg_update";
inline constexpr char kReduceKernel[] = "nsg_reduce";
inline constexpr char kApplyKernel[] = "nsg_apply";
inline constexpr char kUpdateBySumsKernel[] = "nsg_update_by_sums";

/// "nsg_update_3" for body 3.
std::string nameOfBody(const std::string &kernel, int64_t variant);

inline constexpr char kGpuProgramSchema[] = "neuroshard.gpu_program/1";

/// The text of <program>.gpu.json.
std::string writeGpuProgram(const GpuProgram &program);

/// Reads a document. Throws a RuntimeError with the place in it, what is
/// expected and what was found.
GpuProgram parseGpuProgram(const std::string &text);

/// Throws a RuntimeError if the program does not fit the manifest's binding of
/// `device`.
void checkGpuProgram(const GpuProgram &program, const Manifest &manifest,
                     int32_t device);

/// Sets GpuLookup::mean. Expects a program that checkGpuProgram accepts.
void bindMeans(GpuProgram &program, const Manifest &manifest, int32_t device);

/// The image for a GPU of `capability` (90 for sm_90): machine code of the same
/// major version and at most its minor one, the newest of these; else PTX.
/// Throws a RuntimeError with what there is if none fits.
const GpuImageFile &chooseImage(const GpuProgram &program, int capability);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_GPUPROGRAM_H
