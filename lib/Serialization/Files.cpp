//===- Files.cpp - Reading and writing whole files ------------------------===//

#include "neuroshard/Serialization/Files.h"

#include "neuroshard/Support/InputLimits.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace neuroshard;
namespace fs = std::filesystem;

namespace {

/// The file that a path names: the end of its symbolic links, which need not
/// exist. A write replaces that file and keeps the links.
Expected<fs::path> fileBehind(const std::string &path) {
  if (path.empty())
    return failure("output", "expected the name of a file, got an empty text");
  std::error_code error;
  fs::file_status there = fs::status(path, error);
  if (fs::exists(there) && !fs::is_regular_file(there))
    return failure(path,
                   "cannot write: something other than a file lies there");
  if (error && there.type() != fs::file_type::not_found)
    return failure(path, "cannot write: " + error.message());
  fs::path file = path;
  while (fs::is_symlink(fs::symlink_status(file, error)))
    file = file.parent_path() / fs::read_symlink(file, error);
  if (!file.has_filename())
    return failure(path, "cannot write: it names a folder");
  fs::path folder = file.parent_path().empty() ? "." : file.parent_path();
  if (!fs::is_directory(folder, error))
    return failure(path, "cannot write: there is no folder '" +
                             folder.string() + "'");
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return failure(path, "cannot write to the folder '" + folder.string() +
                             "': " + std::strerror(errno));
  return file;
}

/// Makes a new file beside `file`, with its mode if it exists. The name of the
/// new file goes to `name`. Returns a descriptor; below 0: see errno.
int openBeside(const fs::path &file, std::string &name) {
  struct stat old;
  bool replaces = stat(file.c_str(), &old) == 0;
  int descriptor = -1;
  for (int i = 0; i < 100 && descriptor < 0; ++i) {
    name = file.string();
    name.append(".").append(std::to_string(getpid()));
    name.append("-").append(std::to_string(i)).append(".partial");
    descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      replaces ? 0600 : 0666);
    if (descriptor < 0 && errno != EEXIST)
      return -1;
  }
  if (descriptor >= 0 && replaces && fchmod(descriptor, old.st_mode & 07777)) {
    int reason = errno;
    close(descriptor);
    std::remove(name.c_str());
    errno = reason;
    return -1;
  }
  return descriptor;
}

/// A file open for reading.
struct OpenFile {
  int descriptor;
  ~OpenFile() {
    if (descriptor >= 0)
      close(descriptor);
  }
};

/// Waits until a pipe with a name, opened without blocking, has a writer. What
/// is read meanwhile goes to `text`. False: nobody writes.
bool waitForWriter(int descriptor, std::string &text) {
  constexpr int kAttempts = 30, kMilliseconds = 100;
  for (int i = 0; i < kAttempts; ++i) {
    pollfd waiting = {descriptor, POLLIN, 0};
    if (poll(&waiting, 1, i ? kMilliseconds : 0) > 0)
      return true;
    // A pipe is at its end without a writer, and only empty with one.
    char byte;
    if (ssize_t count = read(descriptor, &byte, 1); count != 0) {
      text.append(&byte, count > 0 ? 1 : 0);
      return true;
    }
  }
  return false;
}

bool writeAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

} // namespace

Expected<std::string> neuroshard::readFile(const std::string &path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return failure(path, "expected a file, got a directory");
  // Without blocking, as a pipe that nobody writes to would for ever.
  OpenFile file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  struct stat status;
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0)
    return failure(path, std::string("cannot open: ") + std::strerror(errno));
  std::string text;
  if (S_ISFIFO(status.st_mode) && !waitForWriter(file.descriptor, text))
    return failure(path, "is a pipe that nobody writes to");
  fcntl(file.descriptor, F_SETFL, 0);
  // Pipes and devices do not know their size, and some have no end.
  bool isTooLarge = status.st_size > static_cast<off_t>(kMaxInputBytes);
  std::vector<char> block(size_t{1} << 16);
  while (!isTooLarge) {
    ssize_t count = read(file.descriptor, block.data(), block.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failure(path, std::string("cannot read: ") + std::strerror(errno));
    if (count == 0)
      break;
    auto size = static_cast<size_t>(count);
    isTooLarge = size > kMaxInputBytes - text.size();
    // What is beyond the limit would double the memory of the text.
    if (!isTooLarge)
      text.append(block.data(), size);
  }
  if (isTooLarge)
    return failure(path, "is too large: " + expectedSize());
  return text;
}

Diagnostics neuroshard::inFile(const std::string &path, Diagnostics errors) {
  for (Diagnostic &error : errors)
    error.where = error.where.empty() ? path : path + ": " + error.where;
  return errors;
}

Expected<void> neuroshard::checkWritable(const std::string &path) {
  Expected<fs::path> file = fileBehind(path);
  if (!file)
    return tl::unexpected(file.error());
  // A file that nobody may change (chattr +i) cannot be replaced either.
  int descriptor = open(file->c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && errno == EPERM)
    return failure(path, std::string("cannot write: ") + std::strerror(errno));
  if (descriptor >= 0)
    close(descriptor);
  return {};
}

Expected<void> neuroshard::writeFile(const std::string &path,
                                     std::string_view text) {
  Expected<fs::path> file = fileBehind(path);
  if (!file)
    return tl::unexpected(file.error());
  std::string temporary;
  int descriptor = openBeside(*file, temporary);
  if (descriptor < 0)
    return failure(path, std::string("cannot write: ") + std::strerror(errno));
  bool whole = writeAll(descriptor, text);
  if (close(descriptor) != 0 || !whole) {
    std::remove(temporary.c_str());
    return failure(path, "cannot write the whole file; is the disk full?");
  }
  std::error_code error;
  fs::rename(temporary, *file, error);
  if (error) {
    std::remove(temporary.c_str());
    return failure(path, "cannot write: " + error.message());
  }
  return {};
}
