//===- ArtifactFile.cpp - Files of an artifact, read and checked ----------===//
//
// Reads regular files alone: a pipe would have to be waited for.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace neuroshard {

namespace {

class OpenFile {
public:
  /// Does not wait for a writer of a pipe.
  explicit OpenFile(const char *path)
      : number(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  OpenFile(const OpenFile &) = delete;
  ~OpenFile() {
    if (number >= 0)
      close(number);
  }

  const int number;
};

const char *kindOf(mode_t mode) {
  if (S_ISDIR(mode))
    return "a directory";
  return S_ISFIFO(mode) ? "a pipe" : "something else";
}

bool isUnchecked() {
  const char *unchecked = std::getenv("NEUROSHARD_CUDA_UNCHECKED");
  return unchecked && *unchecked;
}

} // namespace

std::string readFile(const std::filesystem::path &path) {
  OpenFile file(path.c_str());
  struct stat status = {};
  if (file.number < 0 || fstat(file.number, &status) != 0)
    fail("cannot read '", path.string(), "': ", std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    fail("cannot read '", path.string(), "': expected a file, found ",
         kindOf(status.st_mode));
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count = read(file.number, &bytes[done], bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      fail("cannot read '", path.string(), "': ", std::strerror(errno));
    if (count == 0) // somebody cuts it short just now
      break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

std::string hashOf(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical,
                           XXH3_128bits(bytes.data(), bytes.size()));
  std::string text;
  for (unsigned char byte : canonical.digest)
    for (int digit : {byte >> 4, byte & 15})
      text += "0123456789abcdef"[digit];
  return text;
}

std::string readHashed(const std::filesystem::path &path,
                       const std::string &hash, const std::string &source) {
  std::string bytes = readFile(path);
  std::string found = hashOf(bytes);
  if (found != hash && !isUnchecked())
    fail("'", path.string(), "' is not the file that ", source,
         " was written with, but damaged, or of another compilation: expected "
         "the hash ",
         hash, ", found ", found, " (", bytes.size(),
         " bytes); compile the model again");
  return bytes;
}

} // namespace neuroshard
