//===- Shard.h - One rectangle of a table and where it lives ----*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_SHARD_H
#define NEUROSHARD_MODEL_SHARD_H

#include "neuroshard/Model/Target.h"

#include <cstdint>
#include <string>
#include <vector>

namespace neuroshard {

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

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_SHARD_H
