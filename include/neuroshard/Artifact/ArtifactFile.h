//===- ArtifactFile.h - Files of an artifact, read and checked -*- C++ -*-===//
//
// The manifest has the hash of each <program>.gpu.json, and that the hashes of
// the program's images: files of another compilation, changed or cut short are
// refused before anything is taken from them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_ARTIFACTFILE_H
#define NEUROSHARD_ARTIFACT_ARTIFACTFILE_H

#include <filesystem>
#include <string>
#include <string_view>

namespace neuroshard {

/// The whole of a regular file. Throws a RuntimeError that names it if there is
/// none or it cannot be read.
std::string readFile(const std::filesystem::path &path);

/// XXH3 of 128 bits, in 32 hexadecimal digits.
std::string hashOf(std::string_view bytes);

/// Reads a file. Throws a RuntimeError unless it has the hash that the file
/// `source` of the same artifact says, or NEUROSHARD_CUDA_UNCHECKED is set,
/// which is for images that were changed by hand.
std::string readHashed(const std::filesystem::path &path,
                       const std::string &hash, const std::string &source);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_ARTIFACTFILE_H
