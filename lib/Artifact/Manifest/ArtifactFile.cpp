//===- ArtifactFile.cpp - Files of an artifact, read and checked ----------===//

#include "neuroshard/Artifact/ArtifactFile.h"
#include "JsonValue.h"
#include "OpenFile.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Support/InputLimits.h"

#include <utility>

namespace neuroshard {

namespace {

/// What a sealed manifest has between its other fields and its hash, and behind
/// it.
constexpr std::string_view kSealBegin = ",\n \"xxh3\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr size_t kHashDigits = 32;

} // namespace

std::string readFile(const std::filesystem::path &path) {
  OpenFile file(path);
  if (static_cast<uint64_t>(file.size()) > kMaxInputBytes)
    fail("cannot read '", path.string(), "': ", expectedSize(), ", found ",
         file.size());
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  // Less if somebody cuts it short just now.
  bytes.resize(static_cast<size_t>(file.read(bytes.data(), file.size())));
  return bytes;
}

std::string sealManifest(std::string_view manifest) {
  size_t end = manifest.find_last_of('}');
  if (end == 0 || end == std::string_view::npos)
    fail("a manifest is a JSON object with fields, found ", manifest);
  end = manifest.find_last_not_of(" \n", end - 1) + 1;
  std::string sealed(manifest.substr(0, end));
  std::string hash = hashOf(sealed);
  return sealed.append(kSealBegin).append(hash).append(kSealEnd);
}

bool isSealed(std::string_view manifest) {
  size_t sealBytes = kSealBegin.size() + kHashDigits + kSealEnd.size();
  if (manifest.size() < sealBytes)
    return false;
  std::string_view fields = manifest.substr(0, manifest.size() - sealBytes);
  std::string seal = std::string(kSealBegin).append(hashOf(fields));
  return manifest.substr(fields.size()) == seal.append(kSealEnd);
}

Manifest openManifest(const std::filesystem::path &folder) {
  std::filesystem::path path = folder / kManifestFile;
  std::string text;
  try {
    text = readFile(path);
  } catch (const RuntimeError &error) {
    // torch.distributed.checkpoint ends a checkpoint with this file.
    if (std::error_code none;
        std::filesystem::exists(folder / ".metadata", none))
      fail("'", folder.string(),
           "' is a checkpoint; expected the folder of an artifact: make one of "
           "its tables by ns.freeze() or 'neuroshard freeze'");
    fail(error.what(), "; expected the folder of an artifact that "
                       "neuroshard-compile or 'neuroshard freeze' wrote");
  }
  if (!isSealed(text))
    fail("'", path.string(),
         "' is not as this version of neuroshard-compile wrote it, but damaged "
         "or changed: expected its own hash at its end (",
         text.size(), " bytes); compile the model again");
  try {
    return parseManifest(text);
  } catch (const RuntimeError &error) {
    fail("'", path.string(), "': ", error.what());
  }
}

std::string readListed(const std::filesystem::path &folder,
                       const Manifest &manifest, const std::string &name) {
  auto listed = manifest.files.find(name);
  if (listed == manifest.files.end())
    fail("'", (folder / kManifestFile).string(), "' lists no file '", name,
         "'; compile the model again");
  std::string bytes = readFile(folder / name);
  std::string found = hashOf(bytes);
  if (found != listed->second)
    fail("'", (folder / name).string(), "' is not the file that ",
         kManifestFile,
         " was written with, but damaged, or of another compilation: expected "
         "the hash ",
         listed->second, ", found ", found, " (", bytes.size(),
         " bytes); compile the model again");
  return bytes;
}

std::optional<std::set<std::string>>
filesOfArtifact(const std::filesystem::path &folder) {
  try {
    nlohmann::json manifest =
        parseJson(readFile(folder / kManifestFile), "manifest");
    JsonValue root(manifest, "manifest");
    std::string_view format = kManifestSchema;
    format.remove_suffix(format.size() - format.rfind('/'));
    if (!root["schema"].text().starts_with(format))
      return std::nullopt;
    std::set<std::string> files = {kManifestFile};
    if (root.has("files"))
      for (std::string &name : root["files"].fields(
               [](std::string name, const JsonValue &) { return name; }))
        files.insert(std::move(name));
    return files;
  } catch (const RuntimeError &) {
    return std::nullopt;
  }
}

void checkArtifact(const std::filesystem::path &folder) {
  Manifest manifest = openManifest(folder);
  std::set<std::string> weights(manifest.weights.begin(),
                                manifest.weights.end());
  for (const auto &[name, hash] : manifest.files)
    if (!weights.count(name)) // each is checked when it is read
      readListed(folder, manifest, name);
}

} // namespace neuroshard
