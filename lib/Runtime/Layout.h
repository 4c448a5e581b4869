//===- Layout.h - Who sends what to whom -----------------------*- C++ -*-===//
//
// Everything about the exchanges that follows from the manifest alone and is
// therefore the same on every device: streams of ids, the rows of partial
// results, and which of them make up each result.
//
// A bucket holds the ids of one lookup that fall into one row range. It goes
// as a stream to each device that has columns of these rows. A pooled entry
// (lookup of one shard) owns some columns of the pooled rows its device sends
// to every bag's home; an unpooled entry has a block of its own.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_LAYOUT_H
#define NEUROSHARD_LIB_RUNTIME_LAYOUT_H

#include "Manifest.h"

#include <vector>

namespace neuroshard::runtime {

struct StreamLayout {
  int32_t lookup;
  int32_t bucket;
  Range rows;
  bool pooled;
  bool weighted;
};

struct EntryLayout {
  int32_t kernel; ///< index into the program's lookups.
  int32_t slot;
  int32_t lookup;
  int32_t stream; ///< within the StreamSet.
  Range cols;     ///< of the table.
  bool pooled;
  int64_t pooledColumn; ///< first column in the pooled rows.
};

/// What one device looks up in one exchange.
struct StreamSet {
  std::vector<StreamLayout> streams;
  std::vector<EntryLayout> entries;
  int64_t pooledWidth = 0; ///< columns of all pooled entries.
};

struct Destination {
  int32_t device;
  int32_t stream;
};

struct BucketLayout {
  int32_t lookup;
  Range rows;
  /// Takes every id of its feature, so ids need no sifting.
  bool whole;
  std::vector<Destination> destinations;
};

/// Columns of a result that one entry of one device contributes to.
struct Piece {
  int32_t device;
  int32_t entry;
  int32_t bucket;
  Range rows;
  Range cols;
};

/// Columns of a result to which the same pieces contribute, in the order in
/// which they are added.
struct Segment {
  Range cols;
  std::vector<int32_t> pieces;
};

struct ResultLayout {
  std::vector<Piece> pieces; ///< by rank, then row, then column.
  std::vector<Segment> segments;
  bool replicated = false;
  int32_t localEntry = -1; ///< of a replicated table.
};

struct ExchangeLayout {
  std::vector<StreamSet> owners; ///< per device; ids come from all devices.
  /// Per device: lookups of replicated tables, on the local ids. The streams
  /// are the same on every device, in the order of the lookups.
  std::vector<StreamSet> locals;
  std::vector<BucketLayout> buckets;
  std::vector<std::vector<int32_t>> bucketsOfLookup;
  std::vector<ResultLayout> results; ///< per lookup.

  bool hasRemote = false;     ///< some lookup is not replicated.
  bool hasReplicated = false; ///< some lookup is.
};

/// The destination number of a device's own replicated tables.
constexpr int32_t localDestination = -1;

std::vector<ExchangeLayout> makeLayouts(const Manifest &manifest);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_LAYOUT_H
