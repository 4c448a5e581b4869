//===- ArtifactDirectory.cpp - Writes artifacts atomically ----------------===//

#include "ArtifactDirectory.h"

#include "neuroshard/Artifact/ArtifactFile.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#include <vector>

using namespace mlir;
namespace fs = llvm::sys::fs;

namespace neuroshard {

static LogicalResult fail(Location loc, const Twine &what, StringRef path,
                          std::error_code error) {
  return emitError(loc) << what << " '" << path << "': " << error.message();
}

static bool isEmptyDirectory(StringRef path) {
  std::error_code error;
  return fs::directory_iterator(path, error) == fs::directory_iterator() &&
         !error;
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

static bool isArtifact(StringRef path) {
  SmallString<128> manifest(path);
  llvm::sys::path::append(manifest, "manifest.json");
  auto file = llvm::MemoryBuffer::getFile(manifest);
  // Of any version.
  StringRef format = StringRef(kManifestSchema).rtrim("0123456789");
  return file && (*file)->getBuffer().contains(format);
}

LogicalResult ArtifactDirectory::create(StringRef path, Location loc) {
  SmallString<128> full(path);
  if (std::error_code error = fs::make_absolute(full))
    return fail(loc, "cannot find", path, error);
  llvm::sys::path::remove_dots(full, /*remove_dot_dot=*/true);
  while (full.size() > 1 && llvm::sys::path::is_separator(full.back()))
    full.pop_back();
  target = full.str();
  if (fs::exists(target) && !fs::is_directory(target))
    return emitError(loc) << "output '" << path << "' is not a directory";
  if (fs::exists(target) && !isEmptyDirectory(target) && !isArtifact(target))
    return emitError(loc)
           << "output '" << path
           << "' is a directory that is not an artifact; choose another, or "
              "remove it first";
  SmallString<128> unique;
  if (std::error_code error =
          fs::createUniqueDirectory(target + ".partial", unique))
    return fail(loc, "cannot create output", path, error);
  temporary = unique.str();
  // Unique directories are for their owner alone.
  if (std::error_code error = fs::setPermissions(
          temporary, static_cast<fs::perms>(0777 & ~fs::getUmask())))
    return fail(loc, "cannot create output", path, error);
  return success();
}

std::string ArtifactDirectory::path(StringRef file) const {
  SmallString<128> result(temporary);
  llvm::sys::path::append(result, file);
  return result.str().str();
}

LogicalResult ArtifactDirectory::write(StringRef file, StringRef text,
                                       Location loc) {
  std::error_code error;
  llvm::ToolOutputFile output(path(file), error, fs::OF_Text);
  if (error)
    return fail(loc, "cannot write", path(file), error);
  output.os() << text;
  output.os().flush();
  if ((error = output.os().error())) {
    output.os().clear_error();
    return fail(loc, "cannot write", path(file), error);
  }
  output.keep();
  return success();
}

FailureOr<std::map<std::string, std::string>>
ArtifactDirectory::hashFiles(Location loc) const {
  std::map<std::string, std::string> hashes;
  llvm::ErrorOr<std::vector<std::string>> files = listFiles(temporary);
  if (!files)
    return fail(loc, "cannot list", temporary, files.getError());
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
    return fail(loc, "cannot write", path(to), error);
  return success();
}

LogicalResult ArtifactDirectory::commit(Location loc) {
  std::string old = temporary + ".old";
  bool isReplacing = fs::exists(target);
  if (isReplacing)
    if (std::error_code error = fs::rename(target, old))
      return fail(loc, "cannot replace", target, error);
  if (std::error_code error = fs::rename(temporary, target)) {
    if (isReplacing)
      fs::rename(old, target);
    return fail(loc, "cannot write", target, error);
  }
  temporary.clear();
  if (isReplacing)
    fs::remove_directories(old);
  return success();
}

ArtifactDirectory::~ArtifactDirectory() {
  if (!temporary.empty())
    fs::remove_directories(temporary);
}

} // namespace neuroshard
