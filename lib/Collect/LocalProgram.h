//===- LocalProgram.h - Program of one device for a shard set ---*- C++ -*-===//
///
/// \file
/// On one device a row shard is a table with fewer rows, and column shards of
/// the same rows are the column shards of one table.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_COLLECT_LOCALPROGRAM_H
#define NEUROSHARD_LIB_COLLECT_LOCALPROGRAM_H

#include "KernelLibrary.h"
#include "neuroshard/Collect/MeasuredSet.h"

#include <string>
#include <vector>

namespace neuroshard::collect {

/// The rows of a table that the set has shards of.
struct LocalTable {
  int table = 0; ///< in the problem.
  int64_t rowBegin = 0;
  int64_t rowEnd = 0;
  std::vector<int64_t> widths; ///< one for each column shard.
};

/// One lookup: a feature of the problem on a local table.
struct LocalLookup {
  int localTable = 0;
  int feature = 0;
};

struct LocalProgram {
  std::vector<LocalTable> tables;
  /// Of unweighted features, then of weighted ones; each list that is not
  /// empty is one exchange.
  std::vector<LocalLookup> lookups[2];
  std::vector<SlotKey> slots;
  /// Per lookup binding: its kernel and slot.
  std::vector<LookupKey> kernels;
  std::vector<int> slotOfKernel;
  std::string manifest;
};

/// An error for what one device cannot run alone: a replicated shard; one
/// column shard of a table whose row-wise state is exact over its columns.
Expected<LocalProgram> makeLocalProgram(const MeasuredSet &set);

} // namespace neuroshard::collect

#endif // NEUROSHARD_LIB_COLLECT_LOCALPROGRAM_H
