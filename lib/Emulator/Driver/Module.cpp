//===- Module.cpp - Modules and launches of the driver --------------------===//
//
// A module is the contents of a shared library that neuroshard-emulate-gpu
// made. It is loaded from a memory file, so that every load is a library of its
// own.
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"
#include "Driver.h"
#include "ElfImage.h"
#include "Launch.h"
#include "neuroshard/Runtime/KernelABI.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

using namespace neuroshard::emulator;

namespace neuroshard::cuda {
struct CUfunc_st {
  std::string name;
  KernelFunction function;
  const int32_t *parameterBytes; ///< ends with 0.
};
struct CUmod_st {
  void *library;
  /// Open as long as the library: its path has the number of the file, and for
  /// a path that is loaded already dlopen returns the first library.
  int file;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};
} // namespace neuroshard::cuda

namespace {
HandleSet<CUmod_st> modules;
HandleSet<CUfunc_st> functions;

/// Makes the nse_* functions visible to modules, also if this library was
/// loaded privately.
void exposeThisLibrary() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&exposeThisLibrary), &info))
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

bool writeAll(int file, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t written = write(file, data, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

CUresult loadLibrary(const void *image, size_t bytes, void *&library,
                     int &file) {
  file = memfd_create("neuroshard-emulated-module", MFD_CLOEXEC);
  if (file < 0 || !writeAll(file, static_cast<const char *>(image), bytes)) {
    std::string reason = std::strerror(errno);
    if (file >= 0)
      close(file);
    return fail(CUDA_ERROR_OUT_OF_MEMORY, "no file in memory: " + reason);
  }
  std::string path = "/proc/self/fd/";
  path.append(std::to_string(file));
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library)
    return CUDA_SUCCESS;
  std::string reason = dlerror();
  close(file);
  return fail(CUDA_ERROR_INVALID_IMAGE, "cannot load the module: " + reason);
}

CUresult toResult(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::IllegalAddress:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case ErrorKind::Endless:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  case ErrorKind::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

CUresult checkLaunch(CUfunction function, const unsigned (&sizes)[6],
                     unsigned sharedBytes, void **extra) {
  if (!functions.contains(function))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not a function");
  for (unsigned size : sizes)
    if (size == 0)
      return fail(CUDA_ERROR_INVALID_VALUE,
                  "grids and blocks have at least one element");
  if (sizes[1] != 1 || sizes[2] != 1 || sizes[4] != 1 || sizes[5] != 1)
    return fail(CUDA_ERROR_NOT_SUPPORTED,
                "the emulator runs grids and blocks of one dimension");
  if (sizes[0] > 2147483647 || sizes[3] > 1024)
    return fail(CUDA_ERROR_INVALID_VALUE,
                "at most 2147483647 blocks of 1024 threads");
  if (sharedBytes != 0 || extra)
    return fail(CUDA_ERROR_NOT_SUPPORTED, "the emulator has neither shared "
                                          "memory nor extra launch options");
  return CUDA_SUCCESS;
}
/// A copy of the arguments of a launch, which the caller may change after it.
class Arguments {
public:
  Arguments(const int32_t *parameterBytes, void **params) {
    for (size_t i = 0; parameterBytes[i] > 0; ++i) {
      std::vector<std::byte> &value =
          values.emplace_back(static_cast<size_t>(parameterBytes[i]));
      std::memcpy(value.data(), params[i], value.size());
    }
  }

  std::vector<void *> pointers() {
    std::vector<void *> all;
    for (std::vector<std::byte> &value : values)
      all.push_back(value.data());
    return all;
  }

private:
  std::vector<std::vector<std::byte>> values;
};

/// Runs a kernel to its end.
CUresult run(const CUfunc_st &function, Arguments &arguments, uint32_t gridSize,
             uint32_t blockSize, Accesses *accesses) {
  std::vector<void *> params = arguments.pointers();
  Kernel kernel;
  kernel.name = function.name;
  kernel.function = function.function;
  kernel.params = params.data();
  kernel.gridSize = gridSize;
  kernel.blockSize = blockSize;
  kernel.seed = getSeedFromEnvironment();
  kernel.ownMemoryOnly = usesOwnMemoryFromEnvironment();
  kernel.accesses = accesses;
  RaceFinder races;
  if (findsRacesFromEnvironment())
    kernel.races = &races;
  try {
    MemoryUse use;
    if (std::optional<KernelError> error = launch(kernel))
      return loseContext(toResult(error->kind), error->message);
  } catch (const std::bad_alloc &) {
    return fail(CUDA_ERROR_OUT_OF_MEMORY, "no room for the kernel's stacks");
  }
  return CUDA_SUCCESS;
}
} // namespace

EMULATOR_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  if (CUresult result = checkContext())
    return result;
  size_t bytes = 0;
  std::string problem = measureElfImage(image, bytes);
  if (!problem.empty())
    return fail(CUDA_ERROR_NO_BINARY_FOR_GPU, problem);
  exposeThisLibrary();
  void *library = nullptr;
  int file = -1;
  if (CUresult result = loadLibrary(image, bytes, library, file))
    return result;
  *module = new CUmod_st{library, file, {}};
  modules.add(*module);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuModuleUnload(CUmodule module) {
  if (!modules.remove(module))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not a module");
  finishAll();
  for (auto &[name, function] : module->functions)
    functions.remove(function.get());
  dlclose(module->library);
  close(module->file);
  delete module;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuModuleGetFunction(CUfunction *function,
                                             CUmodule module,
                                             const char *name) {
  if (CUresult result = checkContext())
    return result;
  if (!modules.contains(module))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not a module");
  std::unique_ptr<CUfunc_st> &known = module->functions[name];
  if (!known) {
    auto find = [&](std::string prefix) {
      return dlsym(module->library, prefix.append(name).c_str());
    };
    void *address = find(NSRT_INVOKE_PREFIX);
    auto *parameterBytes =
        static_cast<const int32_t *>(find(NSE_PARAMETERS_PREFIX));
    if (!address || !parameterBytes)
      return fail(CUDA_ERROR_NOT_FOUND, std::string("no kernel ").append(name));
    known.reset(new CUfunc_st{name, reinterpret_cast<KernelFunction>(address),
                              parameterBytes});
    functions.add(known.get());
  }
  *function = known.get();
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuFuncGetAttribute(int *value, int attribute,
                                            CUfunction function) {
  if (!functions.contains(function))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not a function");
  // 0 is CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK; all others are 0.
  *value = attribute == 0 ? 1024 : 0;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction function, int blockThreads, size_t) {
  if (!functions.contains(function))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not a function");
  if (blockThreads < 1 || blockThreads > 1024)
    return fail(CUDA_ERROR_INVALID_VALUE, "blocks have 1 to 1024 threads");
  *blocks = std::min(32, 2048 / blockThreads);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gridX,
                                        unsigned gridY, unsigned gridZ,
                                        unsigned blockX, unsigned blockY,
                                        unsigned blockZ, unsigned sharedBytes,
                                        CUstream stream, void **params,
                                        void **extra) {
  Queue queue;
  if (CUresult result = checkCall(stream, &queue))
    return result;
  if (CUresult result =
          checkLaunch(function, {gridX, gridY, gridZ, blockX, blockY, blockZ},
                      sharedBytes, extra))
    return result;
  auto work = [=, arguments = Arguments(function->parameterBytes, params)](
                  Accesses *accesses) mutable {
    return run(*function, arguments, gridX, blockX, accesses);
  };
  return submit(queue, {"kernel " + function->name, work});
}
