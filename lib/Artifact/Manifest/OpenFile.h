//===- OpenFile.h - A regular file that is read ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_MANIFEST_OPENFILE_H
#define NEUROSHARD_LIB_ARTIFACT_MANIFEST_OPENFILE_H

#include <cstdint>
#include <filesystem>

namespace neuroshard {

class OpenFile {
public:
  /// Does not wait for a writer of a pipe. Throws a RuntimeError that names the
  /// file if it cannot be read or is no regular file.
  explicit OpenFile(const std::filesystem::path &path);
  OpenFile(const OpenFile &) = delete;
  ~OpenFile();

  int64_t size() const { return bytes; }
  /// Reads up to `count` bytes, less only at the end; returns how many.
  int64_t read(void *to, int64_t count);

private:
  std::filesystem::path path;
  int number;
  int64_t bytes = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_MANIFEST_OPENFILE_H
