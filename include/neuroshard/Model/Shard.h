//===- Shard.h - One rectangle of a table and where it lives ----*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_SHARD_H
#define NEUROSHARD_MODEL_SHARD_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// Where the weights of a shard live: device memory, or the memory of the host
/// the device belongs to.
enum class Tier { Hbm, Dram };

/// Rows [rowBegin, rowEnd) x columns [colBegin, colEnd) of a table.
///
/// One device owns a shard; with several devices each holds a full copy
/// (replicated, "data-parallel"), and the ids stay where the batch is.
struct Shard {
  std::string name;
  std::string table;
  int64_t rowBegin = 0;
  int64_t rowEnd = 0;
  int64_t colBegin = 0;
  int64_t colEnd = 0;
  std::vector<int> devices;
  Tier tier = Tier::Hbm;

  int64_t rows() const { return rowEnd - rowBegin; }
  int64_t width() const { return colEnd - colBegin; }
  bool replicated() const { return devices.size() > 1; }
  bool operator==(const Shard &) const = default;
};

/// Column boundaries inside a table are multiples of this many elements; the
/// last shard may have any width.
inline constexpr int64_t kColumnAlignment = 4;

/// The rows of a shard start at multiples of this many bytes.
inline constexpr int64_t kRowAlignmentBytes = 16;

/// "hbm" or "dram".
std::string_view toString(Tier tier);
std::optional<Tier> parseTier(std::string_view text);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_SHARD_H
