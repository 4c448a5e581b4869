//===- WeightFiles.h - The weights that an artifact brings -----*- C++ -*-===//
//
// An artifact that was frozen for serving has a file for each shard: its rows
// of weights one after the other, without padding, as Model/RowLayout.h lays
// them out. The manifest lists them with their hashes.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_WEIGHTFILES_H
#define NEUROSHARD_ARTIFACT_WEIGHTFILES_H

#include "neuroshard/Artifact/Manifest.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

/// Writes into the manifest of the artifact in `folder` that names[i], a file
/// there, has the weights of shard i. Throws a RuntimeError, with the manifest
/// as it was, if one is missing or has not the bytes of the shard.
void addWeights(const std::filesystem::path &folder,
                const std::vector<std::string> &names);

/// Reads the weights of one shard in order.
class WeightReader {
public:
  /// Throws a RuntimeError if the file is missing or has another size.
  WeightReader(const std::filesystem::path &folder, const Manifest &manifest,
               int32_t shard);
  ~WeightReader();

  /// Bytes of one row.
  int64_t rowBytes() const { return bytesOfRow; }
  void read(std::byte *to, int64_t bytes);
  /// Throws a RuntimeError unless all has been read and has the hash that the
  /// manifest lists.
  void finish();

private:
  struct State;
  std::unique_ptr<State> state;
  int64_t bytesOfRow;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_WEIGHTFILES_H
