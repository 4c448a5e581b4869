//===- CudaDriver.cpp - Loads the CUDA driver -----------------------------===//
//
// Loaded when it is first needed, and never unloaded: drivers do not support
// that.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/RuntimeCuda/CudaDriver.h"
#include "Status.h"

#include <cstdlib>
#include <dlfcn.h>
#include <memory>

namespace neuroshard::cuda {
namespace {

constexpr const char *kDriverVariable = "NEUROSHARD_CUDA_DRIVER";
constexpr const char *kDefaultLibrary = "libcuda.so.1";

void *findSymbol(void *library, const char *symbol, const std::string &file) {
  void *address = dlsym(library, symbol);
  if (!address)
    failWith(NSC_NO_DRIVER, "the CUDA driver ", file, " has no function ",
             symbol, "; a driver for CUDA 12 or newer is needed");
  return address;
}

/// A driver with a GPU, or the reason why there is none.
struct Loaded {
  CudaDriver driver;
  std::string problem;
};

Loaded loadOnce() {
  Loaded loaded;
  const char *named = std::getenv(kDriverVariable);
  try {
    loaded.driver = CudaDriver::load(named && *named ? named : kDefaultLibrary);
  } catch (const std::exception &error) {
    loaded.problem = error.what();
  }
  return loaded;
}

/// Initialises a loaded driver and looks for a GPU.
void start(const CudaDriver &driver) {
  CUresult result = driver.init(0);
  if (result != CUDA_SUCCESS)
    failWith(NSC_NO_DRIVER, "the CUDA driver ", driver.name,
             " does not start: ", driver.text(result));
  int count = 0;
  driver.check(driver.deviceGetCount(&count), "counting GPUs");
  if (count == 0)
    failWith(NSC_NO_DRIVER, "the CUDA driver ", driver.name, " finds no GPU");
}

} // namespace

CudaDriver CudaDriver::load(const std::string &file) {
  CudaDriver driver;
  driver.name = file;
  // Global, since emulated kernels call functions of the library.
  driver.library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!driver.library)
    failWith(NSC_NO_DRIVER, "no CUDA driver: ", dlerror(), " (",
             kDriverVariable, " may name another library)");
  auto find = [&](const char *symbol) {
    return findSymbol(driver.library, symbol, file);
  };
#define NEUROSHARD_CUDA_FIND(member, symbol, parameters)                       \
  driver.member = reinterpret_cast<CUresult(*) parameters>(find(#symbol));
  NEUROSHARD_CUDA_FUNCTIONS(NEUROSHARD_CUDA_FIND)
#undef NEUROSHARD_CUDA_FIND
#define NEUROSHARD_CUDA_FIND(member, symbol, parameters)                       \
  driver.member = reinterpret_cast<CUresult(*) parameters>(                    \
      dlsym(driver.library, #symbol));
  NEUROSHARD_CUDA_OPTIONAL_FUNCTIONS(NEUROSHARD_CUDA_FIND)
#undef NEUROSHARD_CUDA_FIND
  driver.emulated = dlsym(driver.library, kEmulatorSymbol) != nullptr;
  start(driver);
  return driver;
}

const CudaDriver &CudaDriver::get() {
  static const Loaded loaded = loadOnce();
  if (!loaded.problem.empty())
    failWith(NSC_NO_DRIVER, loaded.problem);
  return loaded.driver;
}

std::string CudaDriver::text(CUresult result) const {
  const char *errorName = nullptr;
  const char *description = nullptr;
  getErrorName(result, &errorName);
  getErrorString(result, &description);
  std::ostringstream text;
  if (errorName)
    text << errorName;
  else
    text << "error " << result;
  if (description)
    text << " (" << description << ")";
  return text.str();
}

void CudaDriver::check(CUresult result, const char *what) const {
  if (result == CUDA_SUCCESS)
    return;
  nsc_status status =
      result == CUDA_ERROR_OUT_OF_MEMORY ? NSC_OUT_OF_MEMORY : NSC_CUDA_ERROR;
  failWith(status, what, ": ", text(result));
}

} // namespace neuroshard::cuda
