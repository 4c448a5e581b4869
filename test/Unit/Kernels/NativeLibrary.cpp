//===- NativeLibrary.cpp - A module compiled and loaded -------------------===//
//
// The file is removed with the object.
//
//===----------------------------------------------------------------------===//

#include "NativeLibrary.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace neuroshard {

std::string makeTemporaryFolder() {
  std::string name =
      (std::filesystem::temp_directory_path() / "neuroshard-XXXXXX").string();
  if (!mkdtemp(name.data())) {
    std::perror("mkdtemp");
    std::abort();
  }
  return name;
}

NativeLibrary::NativeLibrary(mlir::ModuleOp module, NativeOptions options)
    : path(makeTemporaryFolder() + "/program.so") {
#if defined(__SANITIZE_ADDRESS__)
  options.addressSanitizer = true;
#endif
  if (failed(compileToSharedLibrary(module, options, path))) {
    std::fprintf(stderr, "compilation failed\n");
    std::abort();
  }
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
}

NativeLibrary::~NativeLibrary() {
  dlclose(handle);
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
}

void *NativeLibrary::find(const char *symbol) const {
  return dlsym(handle, symbol);
}

} // namespace neuroshard
