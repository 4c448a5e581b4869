//===- OpenFile.cpp - A regular file that is read -------------------------===//
//
// Regular files alone: a pipe would have to be waited for.
//
//===----------------------------------------------------------------------===//

#include "OpenFile.h"

#include "neuroshard/Artifact/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace neuroshard {

static const char *kindOf(mode_t mode) {
  if (S_ISDIR(mode))
    return "a directory";
  return S_ISFIFO(mode) ? "a pipe" : "something else";
}

OpenFile::OpenFile(const std::filesystem::path &path)
    : path(path),
      number(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (number < 0)
    fail("cannot read '", path.string(), "': ", std::strerror(errno));
  struct stat status = {};
  if (fstat(number, &status) != 0) {
    int error = errno;
    close(number);
    fail("cannot read '", path.string(), "': ", std::strerror(error));
  }
  if (!S_ISREG(status.st_mode)) {
    close(number);
    fail("cannot read '", path.string(), "': expected a file, found ",
         kindOf(status.st_mode));
  }
  bytes = status.st_size;
}

OpenFile::~OpenFile() { close(number); }

int64_t OpenFile::read(void *to, int64_t count) {
  int64_t done = 0;
  while (done < count) {
    ssize_t some = ::read(number, static_cast<char *>(to) + done,
                          static_cast<size_t>(count - done));
    if (some < 0 && errno == EINTR)
      continue;
    if (some < 0)
      fail("cannot read '", path.string(), "': ", std::strerror(errno));
    if (some == 0)
      break;
    done += some;
  }
  return done;
}

} // namespace neuroshard
