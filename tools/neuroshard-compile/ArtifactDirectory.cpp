//===- ArtifactDirectory.cpp - Writes artifacts atomically ----------------===//

#include "ArtifactDirectory.h"

#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Conversion/Native/WriteOutput.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <optional>
#include <vector>

using namespace mlir;
namespace fs = llvm::sys::fs;

namespace neuroshard {

static LogicalResult fail(Location loc, const Twine &what, StringRef path,
                          std::error_code error) {
  return emitError(loc) << what << " '" << printable(path)
                        << "': " << error.message();
}

/// The files below a directory, by their path in it.
static llvm::ErrorOr<std::vector<std::string>> listFiles(StringRef directory) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error,
                                         /*follow_symlinks=*/false),
      end;
  for (; !error && entry != end; entry.increment(error))
    if (entry->type() != fs::file_type::directory_file)
      files.push_back(
          StringRef(entry->path()).drop_front(directory.size() + 1).str());
  if (error)
    return error;
  llvm::sort(files);
  return files;
}

/// What is at the target may be removed if its manifest lists it.
LogicalResult ArtifactDirectory::checkReplaceable(Location loc) const {
  if (!fs::exists(target))
    return success();
  if (!fs::is_directory(target))
    return emitError(loc) << "output '" << printable(target)
                          << "' is not a directory";
  llvm::ErrorOr<std::vector<std::string>> files = listFiles(target);
  if (!files)
    return fail(loc, "cannot list", target, files.getError());
  if (files->empty())
    return success();
  std::optional<std::set<std::string>> listed = filesOfArtifact(target);
  if (!listed)
    return emitError(loc)
           << "output '" << printable(target)
           << "' is a directory that is not an artifact; choose another, or "
              "remove it first";
  for (const std::string &file : *files)
    if (!listed->count(file))
      return emitError(loc)
             << "output '" << printable(target) << "' is an artifact with '"
             << printable(file)
             << "', which its manifest does not list and the compiler would "
                "remove; move it away, or choose another directory";
  return success();
}

LogicalResult ArtifactDirectory::create(StringRef path, Location loc) {
  SmallString<128> full(path), real;
  if (std::error_code error = fs::make_absolute(full))
    return fail(loc, "cannot find", path, error);
  llvm::sys::path::remove_dots(full, /*remove_dot_dot=*/true);
  while (full.size() > 1 && llvm::sys::path::is_separator(full.back()))
    full.pop_back();
  // A symbolic link stays.
  target = fs::real_path(full, real) ? full.str() : real.str();
  if (failed(checkReplaceable(loc)))
    return failure();
  if (std::error_code error = partial.create(target))
    return fail(loc, "cannot create output", path, error);
  return success();
}

std::string ArtifactDirectory::path(StringRef file) const {
  SmallString<128> result(partial.path());
  llvm::sys::path::append(result, file);
  return result.str().str();
}

LogicalResult ArtifactDirectory::write(StringRef file, StringRef text,
                                       Location loc) {
  return writeOutput(loc, path(file), fs::OF_Text,
                     [&](llvm::raw_pwrite_stream &output) {
                       output << text;
                       return success();
                     });
}

FailureOr<std::map<std::string, std::string>>
ArtifactDirectory::hashFiles(Location loc) const {
  std::map<std::string, std::string> hashes;
  llvm::ErrorOr<std::vector<std::string>> files = listFiles(partial.path());
  if (!files)
    return fail(loc, "cannot list", partial.path(), files.getError());
  for (const std::string &file : *files) {
    auto buffer = llvm::MemoryBuffer::getFile(path(file));
    if (!buffer)
      return fail(loc, "cannot read", path(file), buffer.getError());
    hashes[file] = hashOf((*buffer)->getBuffer());
  }
  return hashes;
}

LogicalResult ArtifactDirectory::createFolder(StringRef name, Location loc) {
  if (std::error_code error = fs::create_directory(path(name)))
    return fail(loc, "cannot create", path(name), error);
  return success();
}

LogicalResult ArtifactDirectory::move(StringRef from, StringRef to,
                                      Location loc) {
  if (std::error_code error = fs::rename(path(from), path(to)))
    return failToWrite(loc, path(to), error);
  return success();
}

FailureOr<std::unique_ptr<llvm::MemoryBuffer>>
ArtifactDirectory::take(StringRef file, Location loc) {
  auto buffer = llvm::MemoryBuffer::getFile(path(file), /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(loc, "cannot read", path(file), buffer.getError());
  if (std::error_code error = fs::remove(path(file)))
    return fail(loc, "cannot remove", path(file), error);
  return std::move(*buffer);
}

LogicalResult ArtifactDirectory::commit(Location loc) {
  if (failed(checkReplaceable(loc)))
    return failure();
  if (std::error_code error = partial.commit())
    return failToWrite(loc, target, error);
  return success();
}

} // namespace neuroshard
