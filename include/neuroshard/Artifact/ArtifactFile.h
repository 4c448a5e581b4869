//===- ArtifactFile.h - Files of an artifact, read and checked -*- C++ -*-===//
//
// The manifest has the hash of every other file of an artifact, and ends in its
// own: files of another compilation, changed or cut short are refused before
// anything is taken from them. The hashes tell damage; they keep nobody from
// writing another artifact, which is code.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_ARTIFACTFILE_H
#define NEUROSHARD_ARTIFACT_ARTIFACTFILE_H

#include "neuroshard/Artifact/Manifest.h"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace neuroshard {

/// The name of the manifest in an artifact's folder.
inline constexpr char kManifestFile[] = "manifest.json";

/// The whole of a regular file. Throws a RuntimeError that names it if there is
/// none or it cannot be read.
std::string readFile(const std::filesystem::path &path);

/// XXH3 of 128 bits, in 32 hexadecimal digits.
std::string hashOf(std::string_view bytes);

/// The text of a manifest, which is a JSON object, with its own hash as the
/// last field.
std::string sealManifest(std::string_view manifest);

/// Whether the text of a manifest ends in its own hash.
bool isSealed(std::string_view manifest);

/// Reads the manifest of the artifact in `folder`. Throws a RuntimeError that
/// names the file if there is none, its own hash does not fit, or
/// parseManifest() refuses it.
Manifest openManifest(const std::filesystem::path &folder);

/// Reads a file of the artifact. Throws a RuntimeError unless its hash is that
/// of the manifest.
std::string readListed(const std::filesystem::path &folder,
                       const Manifest &manifest, const std::string &name);

/// The files that the manifest in `folder`, of any version, lists, and itself.
/// Nothing if there is no manifest of an artifact.
std::optional<std::set<std::string>>
filesOfArtifact(const std::filesystem::path &folder);

/// Opens the manifest and reads every file that it lists. Throws a RuntimeError
/// for the first that is missing or changed. Other files may lie there.
void checkArtifact(const std::filesystem::path &folder);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_ARTIFACTFILE_H
