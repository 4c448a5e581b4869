//===- InputFile.cpp - Reads the input with a limit -----------------------===//
//
// MLIR maps files of any size into memory, and reads pipes and devices to their
// end, which some do not have.
//
//===----------------------------------------------------------------------===//

#include "InputFile.h"

#include "neuroshard/Support/InputLimits.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

namespace fs = llvm::sys::fs;

namespace neuroshard {

/// Fills `text` up to the end of the file, or a bit beyond the limit.
static llvm::Error readStream(fs::file_t file,
                              llvm::SmallVectorImpl<char> &text) {
  constexpr size_t kBlock = 1 << 16;
  while (text.size() <= kMaxInputBytes) {
    size_t done = text.size();
    text.resize_for_overwrite(done + kBlock);
    llvm::Expected<size_t> count = fs::readNativeFile(
        file, llvm::MutableArrayRef<char>(text).drop_front(done));
    text.truncate(done + (count ? *count : 0));
    if (!count)
      return count.takeError();
    if (*count == 0)
      break;
  }
  return llvm::Error::success();
}

static std::string tooLarge(llvm::StringRef path) {
  return "input file '" + printable(path) + "' is too large: " + expectedSize();
}

static std::unique_ptr<llvm::MemoryBuffer> openStream(llvm::StringRef path,
                                                      std::string &message) {
  bool isStandardInput = path == "-";
  llvm::Expected<fs::file_t> file =
      isStandardInput ? fs::getStdinHandle() : fs::openNativeFileForRead(path);
  llvm::SmallVector<char, 0> text;
  llvm::Error error = file ? readStream(*file, text) : file.takeError();
  if (file && !isStandardInput)
    fs::closeFile(*file);
  if (error) {
    message = "cannot open input file '" + printable(path) +
              "': " + llvm::toString(std::move(error));
    return nullptr;
  }
  if (text.size() > kMaxInputBytes) {
    message = tooLarge(path);
    return nullptr;
  }
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(text), isStandardInput ? "<stdin>" : path);
}

std::unique_ptr<llvm::MemoryBuffer> openInput(llvm::StringRef path,
                                              std::string &message) {
  fs::file_status found;
  if (path == "-" || (!fs::status(path, found) && !fs::is_regular_file(found) &&
                      !fs::is_directory(found)))
    return openStream(path, message);
  if (found.getSize() > kMaxInputBytes) {
    message = tooLarge(path);
    return nullptr;
  }
  std::unique_ptr<llvm::MemoryBuffer> file =
      mlir::openInputFile(path, &message);
  message = printable(message);
  return file;
}

} // namespace neuroshard
