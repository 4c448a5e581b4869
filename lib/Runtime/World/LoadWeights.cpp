//===- LoadWeights.cpp - Weights that an artifact brings ------------------===//

#include "LoadWeights.h"

#include "neuroshard/Artifact/WeightFiles.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::runtime {

static void fill(Shard &shard, WeightReader &reader) {
  constexpr int64_t kReadBytes = int64_t{4} << 20;
  int64_t rowBytes = reader.rowBytes();
  int64_t most = std::max<int64_t>(1, kReadBytes / rowBytes);
  std::vector<std::byte> read;
  shard.writeWeights(shard.spec().rows, [&](const HostRows &part) {
    for (int64_t row = part.rows.begin; row < part.rows.end; row += most) {
      int64_t count = std::min(most, part.rows.end - row);
      read.resize(static_cast<size_t>(count * rowBytes));
      reader.read(read.data(), count * rowBytes);
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(part.row(row + i), read.data() + i * rowBytes,
                    static_cast<size_t>(rowBytes));
    }
  });
}

void loadWeights(Device &device, const std::filesystem::path &folder) {
  const Manifest &manifest = device.manifest();
  if (manifest.weights.empty())
    return;
  for (size_t slot = 0; slot < device.slots.size(); ++slot) {
    int32_t shard =
        manifest.bindings[static_cast<size_t>(device.rank())].slots[slot];
    WeightReader reader(folder, manifest, shard);
    fill(device.slots[slot], reader);
    reader.finish();
  }
}

} // namespace neuroshard::runtime
