//===- RoutingKernels.h - The kernels of all programs, emulated -*- C++ -*-===//

#ifndef NEUROSHARD_TEST_RUNTIMECUDA_ROUTINGKERNELS_H
#define NEUROSHARD_TEST_RUNTIMECUDA_ROUTINGKERNELS_H

#include "CompiledModule.h"
#include "EmulatorLibrary.h"

#include "neuroshard/Conversion/GPU/GpuModule.h"
#include "neuroshard/Conversion/GPU/GpuPipelines.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"
#include "neuroshard/Support/Round.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <random>
#include <string>
#include <vector>

namespace neuroshard::cuda {

/// The GPU module of a program without tables, ready to be compiled.
inline std::string routeModule() {
  mlir::DialectRegistry registry;
  registerNativeDialects(registry);
  registerGpuDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  EXPECT_TRUE(succeeded(buildGpuModule(*module, {}, {})));
  mlir::PassManager passes(&context);
  buildGpuSimplification(passes);
  EXPECT_TRUE(succeeded(passes.run(*module)));
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}

/// Memory of all arrays of a launch, so that nothing is written unseen.
class Arena {
public:
  explicit Arena(uint32_t seed) : random(seed) {
    bytes.resize(1 << 20);
    for (std::byte &byte : bytes)
      byte = static_cast<std::byte>(random());
  }

  uint32_t below(uint32_t limit) { return random() % limit; }

  /// An array that begins anywhere its type may.
  template <typename T> T *take(int64_t count) {
    used = static_cast<size_t>(
        roundUp(static_cast<int64_t>(used) + 16 * below(2), 16));
    used += below(4) * sizeof(T);
    T *array = reinterpret_cast<T *>(bytes.data() + used);
    used += static_cast<size_t>(count) * sizeof(T);
    EXPECT_LE(used, bytes.size());
    return array;
  }

  std::vector<std::byte> bytes;

private:
  std::mt19937 random;
  size_t used = 0;
};

/// Kernels of a module in the emulator.
class RoutingKernels {
public:
  explicit RoutingKernels(const std::string &text) {
    std::string image = compile(text);
    emulator.check(emulator->moduleLoadData(&module, image.data()));
  }
  ~RoutingKernels() { emulator.check(emulator->moduleUnload(module)); }

  template <typename T> CUdeviceptr upload(const std::vector<T> &list) {
    return list.empty() ? 0 : emulator.upload(list);
  }

  /// Whether the launch succeeds.
  template <typename... Arguments>
  bool launch(const char *kernel, int64_t blocks, Arguments... arguments) {
    CUfunction function = nullptr;
    emulator.check(emulator->moduleGetFunction(&function, module, kernel));
    void *parameters[] = {&arguments...};
    return blocks == 0 ||
           emulator->launchKernel(function, static_cast<unsigned>(blocks), 1, 1,
                                  NSG_THREADS, 1, 1, 0, nullptr, parameters,
                                  nullptr) == CUDA_SUCCESS;
  }

  std::string lastError() const { return emulator.getLastError(); }

  EmulatorLibrary emulator;

private:
  CUmodule module = nullptr;
};

/// A copy of an arena in the memory of the emulated GPU.
class Upload {
public:
  Upload(RoutingKernels &kernels, const Arena &arena)
      : kernels(kernels), first(arena.bytes.data()), size(arena.bytes.size()),
        memory(kernels.emulator.upload(arena.bytes)) {}

  /// The same place in the copy; null for null.
  template <typename T> T *at(T *pointer) const {
    auto offset = reinterpret_cast<const std::byte *>(pointer) - first;
    return pointer ? reinterpret_cast<T *>(memory +
                                           static_cast<CUdeviceptr>(offset))
                   : nullptr;
  }

  std::vector<std::byte> download() const {
    std::vector<std::byte> bytes(size);
    kernels.emulator.download(memory, bytes);
    return bytes;
  }

private:
  RoutingKernels &kernels;
  const std::byte *first;
  size_t size;
  CUdeviceptr memory;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_TEST_RUNTIMECUDA_ROUTINGKERNELS_H
