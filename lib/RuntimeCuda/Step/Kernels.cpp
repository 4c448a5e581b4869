//===- Kernels.cpp - The loaded kernels of a device program ---------------===//
//
// Finds the kernels of the image by name and asks how many blocks run at once.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "Driver/Status.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <algorithm>

namespace neuroshard::cuda {
namespace {

constexpr const char *kKernelNames[] = {
    "nsg_lookup",           "nsg_weight_gradient",
    "nsg_expand",           "nsg_ranges",
    "nsg_partials",         "nsg_update",
    "nsg_reduce",           "nsg_apply",
    "nsg_update_by_sums",   "nsg_move_rows",
    "nsg_move_scaled_rows", "nsg_add_up",
    "nsg_check_offsets",    "nsg_trust_offsets",
    "nsg_count_bags",       "nsg_pack_ids",
    "nsg_add_values",       "nsg_divide_values"};

const GpuImageFile &imageFor(const Gpu &gpu, const GpuProgram &program) {
  if (!gpu.driver.emulated)
    return chooseImage(program, gpu.capability);
  if (!program.emulated)
    fail("the program was not compiled for the emulator; compile the model "
         "with --emulate");
  return *program.emulated;
}

} // namespace

Kernels::Kernels(const Gpu &gpu, const Binding &binding,
                 const std::string &directory)
    : gpu(gpu), file(imageFor(gpu, binding.program).file) {
  std::string image = readGpuFile(directory, binding.manifest, file);
  CUresult result = gpu.driver.moduleLoadData(&module, image.c_str());
  if (result != CUDA_SUCCESS)
    failWith(result == CUDA_ERROR_OUT_OF_MEMORY ? NSC_OUT_OF_MEMORY
                                                : NSC_CUDA_ERROR,
             "cannot load '", file, "' on ", gpu.name, " (sm_", gpu.capability,
             ", driver for CUDA ", gpu.driverVersion / 1000, ".",
             gpu.driverVersion % 1000 / 10, "): ", gpu.driver.text(result));
  try {
    findFunctions(binding.program);
  } catch (...) {
    gpu.driver.moduleUnload(module);
    throw;
  }
}

Kernels::~Kernels() { gpu.driver.moduleUnload(module); }

void Kernels::findFunctions(const GpuProgram &program) {
  for (size_t i = 0; i < functions.size(); ++i) {
    const char *name = kKernelNames[i];
    if (!program.hasKernel(name))
      continue;
    CUresult result = gpu.driver.moduleGetFunction(&functions[i], module, name);
    if (result != CUDA_SUCCESS)
      fail("'", file, "' has no kernel ", name,
           ", which its .gpu.json lists: ", gpu.driver.text(result));
    int blocks = std::max(1, gpu.threadsPerMultiprocessor / NSG_THREADS);
    if (gpu.driver.occupancyMaxActiveBlocks)
      gpu.driver.check(gpu.driver.occupancyMaxActiveBlocks(
                           &blocks, functions[i], NSG_THREADS, 0),
                       "asking how many blocks run at once");
    resident[i] =
        static_cast<int64_t>(std::max(1, blocks)) * gpu.multiprocessors;
  }
}

void Kernels::launchWith(Kernel kernel, int64_t blocks, CUstream stream,
                         void **arguments) const {
  if (blocks == 0)
    return;
  const char *name = kKernelNames[static_cast<size_t>(kernel)];
  CUfunction function = functions[static_cast<size_t>(kernel)];
  if (!function)
    fail("'", file, "' was compiled without the kernel ", name);
  CUresult result =
      gpu.driver.launchKernel(function, static_cast<unsigned>(blocks), 1, 1,
                              NSG_THREADS, 1, 1, 0, stream, arguments, nullptr);
  if (result != CUDA_SUCCESS)
    failWith(NSC_CUDA_ERROR, "launching ", name, ": ", gpu.driver.text(result));
}

} // namespace neuroshard::cuda
