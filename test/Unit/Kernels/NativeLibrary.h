//===- NativeLibrary.h - A module compiled and loaded ----------*- C++ -*-===//
//
// Compiles a module to a shared library in a temporary folder and loads it. Has
// the address sanitizer if the test program has it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_KERNELS_NATIVELIBRARY_H
#define NEUROSHARD_TEST_KERNELS_NATIVELIBRARY_H

#include "neuroshard/Conversion/Native/SharedLibrary.h"

#include <string>

namespace neuroshard {

/// Owns the loaded library and its file.
class NativeLibrary {
public:
  /// Ends the test program with a message if anything fails.
  explicit NativeLibrary(mlir::ModuleOp module, NativeOptions options = {});
  NativeLibrary(const NativeLibrary &) = delete;
  NativeLibrary &operator=(const NativeLibrary &) = delete;
  ~NativeLibrary();

  /// The address of an exported symbol, or null.
  void *find(const char *symbol) const;

private:
  std::string path;
  void *handle;
};

/// A new, empty folder under the temporary one.
std::string makeTemporaryFolder();

} // namespace neuroshard

#endif // NEUROSHARD_TEST_KERNELS_NATIVELIBRARY_H
