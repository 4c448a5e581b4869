//===- Kernels.h - The loaded kernels of a device program ------*- C++ -*-===//
//
// Owns the loaded image and launches its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_KERNELS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_KERNELS_H

#include "Binding.h"
#include "Driver/Gpu.h"

#include <array>
#include <string>

namespace neuroshard::cuda {

enum class Kernel {
  Lookup,
  WeightGradient,
  Expand,
  Ranges,
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
  int64_t residentBlocks(Kernel kernel) const {
    return resident[static_cast<size_t>(kernel)];
  }

  /// Launches `blocks` blocks; does nothing for 0.
  template <typename... Arguments>
  void launch(Kernel kernel, int64_t blocks, CUstream stream,
              Arguments... arguments) const {
    void *pointers[] = {&arguments...};
    launchWith(kernel, blocks, stream, pointers);
  }

private:
  void launchWith(Kernel kernel, int64_t blocks, CUstream stream,
                  void **arguments) const;
  void findFunctions(const GpuProgram &program);

  const Gpu &gpu;
  std::string file;
  CUmodule module = nullptr;
  static constexpr size_t kNumKernels =
      static_cast<size_t>(Kernel::DivideValues) + 1;
  std::array<CUfunction, kNumKernels> functions = {};
  std::array<int64_t, kNumKernels> resident = {};
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_KERNELS_H
