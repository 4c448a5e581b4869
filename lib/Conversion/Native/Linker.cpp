//===- Linker.cpp - Linking object code with lld --------------------------===//
//
// lld runs as a process of its own: no linker state in the compiler, and no
// dependency on lld's libraries.
//
//===----------------------------------------------------------------------===//

#include "Linker.h"

#include "neuroshard/Conversion/Native/WriteOutput.h"
#include "neuroshard/Support/Printable.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <fcntl.h>
#include <unistd.h>

using namespace mlir;

namespace neuroshard {

/// The linker's path; empty if there is none.
static std::string findLinker(const NativeOptions &options) {
  auto find = [](StringRef name, ArrayRef<StringRef> folders = {}) {
    llvm::ErrorOr<std::string> path =
        llvm::sys::findProgramByName(name, folders);
    return path ? *path : std::string();
  };
  if (!options.linker.empty())
    return find(options.linker);
  std::string path = find("ld.lld-22");
  if (path.empty())
    path = find("ld.lld", {NEUROSHARD_LLVM_TOOLS_DIR});
  if (path.empty())
    path = find("ld.lld");
  return path;
}

/// Whether the disk has room for the library. lld maps its output, and so ends
/// by a signal where it has not.
static std::error_code checkRoom(StringRef path, StringRef objectPath) {
  uint64_t objectBytes = 0;
  if (std::error_code error = llvm::sys::fs::file_size(objectPath, objectBytes))
    return error;
  // Sections are copied, and begin at pages.
  auto mostBytes = static_cast<off_t>(2 * objectBytes + (1 << 16));
  int file = -1;
  if (std::error_code error = llvm::sys::fs::openFileForWrite(path, file))
    return error;
  int problem = posix_fallocate(file, 0, mostBytes);
  close(file);
  llvm::sys::fs::remove(path);
  return {problem, std::generic_category()};
}

LogicalResult linkSharedLibrary(ModuleOp module, const NativeOptions &options,
                                StringRef objectPath, StringRef path) {
  std::string linker = findLinker(options);
  if (linker.empty()) {
    if (!options.linker.empty())
      return emitError(module.getLoc())
             << "linker '" << options.linker << "' not found";
    return emitError(module.getLoc())
           << "no linker: neither ld.lld-22 nor ld.lld is "
           << "on the search path; install the package "
           << "lld-22 or name a linker";
  }

  if (std::error_code error = checkRoom(path, objectPath))
    return failToWrite(module.getLoc(), path, error);

  SmallString<128> messages;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile(
          "neuroshard-link", "txt", messages))
    return emitError(module.getLoc())
           << "cannot make a temporary file: " << error.message();
  llvm::FileRemover removeMessages(messages);

  // lld puts random characters in the place of each % of its output's path.
  SmallString<128> output(path);
  llvm::FileRemover removeOutput;
  if (path.contains('%')) {
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("neuroshard-link", "so", output))
      return emitError(module.getLoc())
             << "cannot make a temporary file: " << error.message();
    removeOutput.setFile(output);
  }

  // -z now: an undefined symbol is found when the library is loaded, not in
  // the middle of a step.
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(
      linker,
      {linker, "-shared", "-z", "now", "-z", "noexecstack", "--gc-sections",
       "-o", output, objectPath},
      /*Env=*/std::nullopt,
      /*Redirects=*/{StringRef(), StringRef(messages), StringRef(messages)},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &problem);
  if (status == 0 && output == path)
    return success();
  if (status == 0) {
    if (std::error_code error = llvm::sys::fs::copy_file(output, path))
      return failToWrite(module.getLoc(), path, error);
    return success();
  }
  InFlightDiagnostic error = emitError(module.getLoc())
                             << "linking '" << printable(path)
                             << "' failed: " << linker;
  if (status < 0)
    return error << (status == -1 ? " did not run: " : " was ended: ")
                 << problem;
  error << " ended with status " << status;
  if (auto text = llvm::MemoryBuffer::getFile(messages))
    error.attachNote() << (*text)->getBuffer().trim();
  return error;
}

} // namespace neuroshard
