//===- Kernels.h - The loaded kernels of a device program ------*- C++ -*-===//
//
// Owns the loaded image and launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_KERNELS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_KERNELS_H

#include "Binding.h"
#include "Driver/Gpu.h"

#include <compare>
#include <map>
#include <string>

namespace neuroshard::cuda {

enum class Kernel {
  Lookup,
  WeightGradient,
  Expand,
  Ranges,
  FindPlaces,
  Partials,
  Update,
  Reduce,
  Apply,
  UpdateBySums,
  MoveRows,
  MoveScaledRows,
  AddUp,
  CheckOffsets,
  TrustOffsets,
  CountBags,
  PackIds,
  AddValues,
  DivideValues
};

/// A kernel, or one body of those that have a kernel for each.
struct KernelBody {
  KernelBody(Kernel kernel, int32_t variant = -1)
      : kernel(kernel), variant(variant) {}

  Kernel kernel;
  int32_t variant;

  std::string name() const;
  auto operator<=>(const KernelBody &) const = default;
};

class Kernels {
public:
  /// Loads the image of `binding` that fits the GPU, or the one for the
  /// emulator, from `directory`. Throws a RuntimeError if none fits.
  Kernels(const Gpu &gpu, const Binding &binding, const std::string &directory);
  ~Kernels();
  Kernels(const Kernels &) = delete;
  Kernels &operator=(const Kernels &) = delete;

  const std::string &imageFile() const { return file; }

  /// Number of blocks of this kernel that the GPU runs at once.
  int64_t residentBlocks(KernelBody kernel) const {
    auto found = functions.find(kernel);
    return found == functions.end() ? 0 : found->second.resident;
  }

  /// Launches `blocks` blocks; does nothing for 0.
  template <typename... Arguments>
  void launch(KernelBody kernel, int64_t blocks, CUstream stream,
              Arguments... arguments) const {
    void *pointers[] = {&arguments...};
    launchWith(kernel, blocks, stream, pointers);
  }

private:
  struct Loaded {
    CUfunction function = nullptr;
    int64_t resident = 0;
  };

  void launchWith(KernelBody kernel, int64_t blocks, CUstream stream,
                  void **arguments) const;
  void findFunctions(const GpuProgram &program);
  void findFunction(KernelBody kernel);

  const Gpu &gpu;
  std::string file;
  CUmodule module = nullptr;
  std::map<KernelBody, Loaded> functions;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_KERNELS_H
