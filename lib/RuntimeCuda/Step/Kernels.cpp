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
    "nsg_lookup",        "nsg_weight_gradient", "nsg_expand",
    "nsg_ranges",        "nsg_find_places",     "nsg_partials",
    kUpdateKernel,       kReduceKernel,         kApplyKernel,
    kUpdateBySumsKernel, "nsg_move_rows",       "nsg_move_scaled_rows",
    "nsg_add_up",        "nsg_check_offsets",   "nsg_trust_offsets",
    "nsg_count_bags",    "nsg_pack_ids",        "nsg_add_values",
    "nsg_divide_values"};

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

std::string KernelBody::name() const {
  const char *ofKernel = kKernelNames[static_cast<size_t>(kernel)];
  return variant < 0 ? ofKernel : nameOfBody(ofKernel, variant);
}

void Kernels::findFunction(KernelBody kernel) {
  Loaded &loaded = functions[kernel];
  if (loaded.function)
    return;
  std::string name = kernel.name();
  CUresult result =
      gpu.driver.moduleGetFunction(&loaded.function, module, name.c_str());
  if (result != CUDA_SUCCESS)
    fail("'", file, "' has no kernel ", name,
         ", which its .gpu.json lists: ", gpu.driver.text(result));
  int blocks = std::max(1, gpu.threadsPerMultiprocessor / NSG_THREADS);
  if (gpu.driver.occupancyMaxActiveBlocks)
    gpu.driver.check(gpu.driver.occupancyMaxActiveBlocks(
                         &blocks, loaded.function, NSG_THREADS, 0),
                     "asking how many blocks run at once");
  loaded.resident =
      static_cast<int64_t>(std::max(1, blocks)) * gpu.multiprocessors;
}

void Kernels::findFunctions(const GpuProgram &program) {
  for (size_t i = 0; i < std::size(kKernelNames); ++i)
    if (program.hasKernel(kKernelNames[i]))
      findFunction(static_cast<Kernel>(i));
  auto findBody = [&](Kernel kernel, int32_t variant) {
    if (variant >= 0)
      findFunction({kernel, variant});
  };
  for (const GpuSlot &slot : program.slots) {
    findBody(Kernel::Update, slot.updateVariant);
    findBody(Kernel::Reduce, slot.reduceVariant);
    findBody(Kernel::Reduce, slot.rowSumsVariant);
    findBody(Kernel::Reduce, slot.distinctSumsVariant);
    findBody(Kernel::Apply, slot.applyVariant);
    findBody(Kernel::UpdateBySums, slot.sumsUpdateVariant);
  }
}

void Kernels::launchWith(KernelBody kernel, int64_t blocks, CUstream stream,
                         void **arguments) const {
  if (blocks == 0)
    return;
  auto found = functions.find(kernel);
  if (found == functions.end())
    fail("'", file, "' was compiled without the kernel ", kernel.name());
  CUresult result = gpu.driver.launchKernel(
      found->second.function, static_cast<unsigned>(blocks), 1, 1, NSG_THREADS,
      1, 1, 0, stream, arguments, nullptr);
  if (result != CUDA_SUCCESS)
    failWith(NSC_CUDA_ERROR, "launching ", kernel.name(), ": ",
             gpu.driver.text(result));
}

} // namespace neuroshard::cuda
