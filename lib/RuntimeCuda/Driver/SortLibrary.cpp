//===- SortLibrary.cpp - Loads the library with the sort ------------------===//
//
// The library is never unloaded.
//
//===----------------------------------------------------------------------===//

#include "SortLibrary.h"
#include "Status.h"

#include <dlfcn.h>
#include <filesystem>

namespace neuroshard::cuda {
namespace {

constexpr const char *kSortSymbol = "nsg_sort";
constexpr const char *kSortLibrary = "libneuroshard_cuda_sort.so";

/// The folder that this code was loaded from, "" if that is not known.
std::filesystem::path ownFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void *>(&findSort), &info) == 0 ||
      !info.dli_fname)
    return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

} // namespace

SortFunction findSort(const CudaDriver &driver) {
  void *symbol = dlsym(driver.library, kSortSymbol);
  if (symbol)
    return reinterpret_cast<SortFunction>(symbol);
  std::filesystem::path beside = ownFolder() / kSortLibrary;
  const std::string problem = "training needs the sort: ";
  void *library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string reason = library ? "" : dlerror();
  if (!library)
    library = dlopen(kSortLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(problem, "cannot load '", beside.string(), "': ", reason);
  symbol = dlsym(library, kSortSymbol);
  if (!symbol)
    fail(problem, "'", kSortLibrary, "' has no function ", kSortSymbol);
  return reinterpret_cast<SortFunction>(symbol);
}

} // namespace neuroshard::cuda
