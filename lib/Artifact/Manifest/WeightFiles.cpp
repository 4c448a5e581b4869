//===- WeightFiles.cpp - The weights that an artifact brings --------------===//

#include "neuroshard/Artifact/WeightFiles.h"

#include "Hash.h"
#include "JsonValue.h"
#include "OpenFile.h"

#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Model/RowLayout.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace fs = std::filesystem;

namespace neuroshard {

namespace {

int64_t rowBytesOf(const Manifest &manifest, const ShardSpec &shard) {
  return neuroshard::rowBytes(shard.cols.size(),
                              manifest.tableOf(shard).elementType);
}

void checkSize(const fs::path &path, const OpenFile &file,
               const Manifest &manifest, const ShardSpec &shard) {
  int64_t expected = shard.rows.size() * rowBytesOf(manifest, shard);
  if (file.size() != expected)
    fail("'", path.string(), "' has ", file.size(),
         " bytes, expected the weights of shard \"", shard.name,
         "\": ", shard.rows.size(), " rows of ", rowBytesOf(manifest, shard),
         " bytes each; freeze the model again");
}

std::string hashOfFile(OpenFile &file) {
  std::vector<char> buffer(size_t{1} << 20);
  Hash hash;
  while (int64_t count =
             file.read(buffer.data(), static_cast<int64_t>(buffer.size())))
    hash.add(buffer.data(), count);
  return hash.text();
}

/// Replaces the manifest in one step.
void replaceManifest(const fs::path &folder, const std::string &text) {
  fs::path written = folder / (std::string(kManifestFile) + ".new");
  std::ofstream(written, std::ios::binary) << text;
  if (readFile(written) != text)
    fail("cannot write '", written.string(), "'");
  std::error_code error;
  fs::rename(written, folder / kManifestFile, error);
  if (error)
    fail("cannot write '", (folder / kManifestFile).string(),
         "': ", error.message());
}

} // namespace

void addWeights(const fs::path &folder, const std::vector<std::string> &names) {
  Manifest manifest = openManifest(folder);
  if (names.size() != manifest.shards.size())
    fail("expected a file for each of ", manifest.shards.size(),
         " shards, found ", names.size());
  nlohmann::json document =
      parseJson(readFile(folder / kManifestFile), "manifest");
  document.erase("xxh3"); // the seal
  document["weights"] = names;
  for (size_t i = 0; i < names.size(); ++i) {
    OpenFile file(folder / names[i]);
    checkSize(folder / names[i], file, manifest, manifest.shards[i]);
    document["files"][names[i]] = hashOfFile(file);
  }
  std::string text = document.dump(1, ' ') + "\n";
  parseManifest(text);
  replaceManifest(folder, sealManifest(text));
}

struct WeightReader::State {
  fs::path path;
  OpenFile file;
  std::string expected;
  Hash hash;
  int64_t left;
};

WeightReader::WeightReader(const fs::path &folder, const Manifest &manifest,
                           int32_t shard) {
  const std::string &name = manifest.weights[static_cast<size_t>(shard)];
  const ShardSpec &spec = manifest.shards[static_cast<size_t>(shard)];
  fs::path path = folder / name;
  state.reset(new State{path, OpenFile(path), manifest.files.at(name), {}, 0});
  checkSize(path, state->file, manifest, spec);
  state->left = state->file.size();
  bytesOfRow = rowBytesOf(manifest, spec);
}

WeightReader::~WeightReader() = default;

void WeightReader::read(std::byte *to, int64_t bytes) {
  if (state->file.read(to, bytes) != bytes)
    fail("'", state->path.string(), "' was cut short while it was read");
  state->hash.add(to, bytes);
  state->left -= bytes;
}

void WeightReader::finish() {
  std::string found = state->hash.text();
  if (state->left != 0 || found != state->expected)
    fail("'", state->path.string(),
         "' is not the file that the model was frozen with, but damaged, or of "
         "another model: expected the hash ",
         state->expected, ", found ", found, "; freeze the model again");
}

} // namespace neuroshard
