//===- Table.h - An embedding table -----------------------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_TABLE_H
#define NEUROSHARD_MODEL_TABLE_H

#include "neuroshard/Model/AccessStatistics.h"
#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/Types.h"

#include <cstdint>
#include <optional>
#include <string>

namespace neuroshard {

struct Table {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  ElementType elementType = ElementType::F32;
  Optimizer optimizer;
  /// Ids are hashed into the rows, rather than assigned once and for all.
  bool hashed = false;
  /// Ids are any numbers, to which rows are given as they are seen
  /// (docs/dynamic-ids.md); so many without a row are counted at most.
  bool dynamicIds = false;
  int64_t idCandidates = 0;
  std::optional<AccessStatistics> access;

  bool operator==(const Table &) const = default;
};

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_TABLE_H
