//===- PartialDirectory.cpp - Output in progress --------------------------===//

#include "PartialDirectory.h"

#include "EndingSignals.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace llvm;
namespace fs = llvm::sys::fs;

namespace neuroshard {

static std::error_code lastError() { return {errno, std::generic_category()}; }

/// Opens and locks a directory. Returns -1 if it is not there, or locked by
/// another process.
static int openLocked(const std::string &path, bool mustLock) {
  int descriptor =
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0)
    return -1;
  // Some file systems have no locks.
  bool isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if ((isLocked || (!mustLock && errno != EWOULDBLOCK)) && fs::exists(path))
    return descriptor;
  close(descriptor);
  return -1;
}

/// Whether `name` is one that create() makes for the target of this name.
static bool isPartialName(StringRef name, StringRef target) {
  return name.consume_front(target) && name.consume_front(".partial-") &&
         name.size() == 6 && all_of(name, isAlnum);
}

static void removeStale(StringRef target) {
  std::error_code error;
  fs::directory_iterator entry(sys::path::parent_path(target), error), end;
  for (; !error && entry != end; entry.increment(error)) {
    if (!isPartialName(sys::path::filename(entry->path()),
                       sys::path::filename(target)))
      continue;
    int descriptor = openLocked(entry->path(), /*mustLock=*/true);
    if (descriptor < 0)
      continue;
    fs::remove_directories(entry->path());
    close(descriptor);
  }
}

std::error_code PartialDirectory::create(StringRef path) {
  target = path.str();
  removeStale(target);
  auto held = holdEnding();
  // Another process may remove it before it is locked.
  for (int i = 0; i < 100 && descriptor < 0; ++i) {
    // LLVM's unique names replace each % of a path.
    std::string unique = target + ".partial-XXXXXX";
    if (!mkdtemp(unique.data()))
      return lastError();
    name = unique;
    descriptor = openLocked(name, /*mustLock=*/false);
  }
  removeOnEnding(held, name);
  if (descriptor < 0)
    return lastError();
  // Unique directories are for their owner alone.
  return fs::setPermissions(name,
                            static_cast<fs::perms>(0777 & ~fs::getUmask()));
}

std::error_code PartialDirectory::commit() {
  auto held = holdEnding();
  if (renameat2(AT_FDCWD, name.c_str(), AT_FDCWD, target.c_str(),
                RENAME_EXCHANGE) == 0)
    return {}; // `name` is what was there, to be removed
  if (errno != ENOENT && errno != EINVAL && errno != ENOSYS)
    return lastError();
  // Nothing to replace, or a file system that cannot exchange.
  std::string old = name + ".old";
  bool isReplacing = fs::exists(target);
  if (isReplacing)
    if (std::error_code error = fs::rename(target, old))
      return error;
  if (std::error_code error = fs::rename(name, target)) {
    if (isReplacing)
      fs::rename(old, target);
    return error;
  }
  name = isReplacing ? old : "";
  removeOnEnding(held, name);
  return {};
}

PartialDirectory::~PartialDirectory() {
  if (!name.empty())
    fs::remove_directories(name);
  removeOnEnding(holdEnding(), "");
  if (descriptor >= 0)
    close(descriptor);
}

} // namespace neuroshard
