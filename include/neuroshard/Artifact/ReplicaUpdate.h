//===- ReplicaUpdate.h - Gradients of replicated tables ---------*- C++ -*-===//
//
// All copies of a replicated table are updated by the gradients of all ranks.
// In each step these travel in the form that takes fewer bytes, by table:
//
//  - Gathered: every rank gets the ids and gradients of all ranks.
//  - Row sums: every rank adds its own gradients up by row, and the sums are
//    all-reduced. Each rank gets a section of the sums of its group, adds them
//    in rank order, does the same with its part of the sums of all groups, and
//    sends the totals back the same way.
//
// The row sums of an exchange are one array of f32: the rows of its tables,
// each padded to 16 bytes, then one number for each row, above 0 if the row has
// gradients in this step. All ranks know the numbers of ids that decide.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_REPLICAUPDATE_H
#define NEUROSHARD_ARTIFACT_REPLICAUPDATE_H

#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard {

/// Where the sums of one table are in the array.
struct RowSums {
  int32_t slot; ///< of the device.
  int32_t table;
  int64_t rows;
  int64_t stride; ///< values from row to row.
  bool weighted;  ///< some lookup of the table is.
  int64_t firstValue;
  int64_t firstCount;
};

/// Some of the entries of a StreamSet, with streams and columns of their own.
struct EntrySubset {
  StreamSet set;
  // Their numbers in the whole set.
  std::vector<int32_t> entries;
  std::vector<int32_t> streams;

  /// Those of the streams of the whole set that this one has.
  std::vector<int64_t> idsOf(std::span<const int64_t> idsOfStream) const;
};

/// How the tables of one StreamSet of `locals` are updated in one step.
struct ReplicaUpdate {
  EntrySubset gathered, summed;
  std::vector<RowSums> tables; ///< of the summed entries.
  int64_t numSums = 0;         ///< values of the array of row sums.

  /// Whether a table's gradients travel as row sums.
  bool sums(int32_t table) const {
    return std::ranges::find(tables, table, &RowSums::table) != tables.end();
  }
};

/// Ranks that add up each other's sums, and all of their sums.
struct ReduceLevel {
  std::vector<int32_t> peers; ///< this rank among them, ascending.
  size_t own;                 ///< its number among them.
  Range sums;

  /// What the peer of this number adds up; a multiple of 16 bytes of f32.
  Range section(size_t peer) const;
  Range ownSection() const { return section(own); }
};

/// The levels of an all-reduce of so many sums: within the rank's group, then,
/// if there are several, over a device of each.
std::vector<ReduceLevel> reduceLevels(const DeviceGroups &groups, int32_t rank,
                                      int64_t numSums);

/// Bytes that each rank receives, and sends, of the sums of a table and of
/// their totals, with what stays on it.
int64_t rowSumBytes(int64_t rows, int64_t dim, WireFormat gradients);

/// How row sums travel: as gradients do, but as bf16 where these have a scale
/// of each row, since the sections of sums do not end with rows.
constexpr WireFormat rowSumFormat(WireFormat gradients) {
  return isScaled(gradients) ? WireFormat::BF16 : gradients;
}

/// Whether row sums of a table take fewer bytes than `gatheredBytes`, those of
/// the ids and gradients of all ranks.
bool sendsRowSums(int64_t rows, int64_t dim, WireFormat gradients,
                  int64_t gatheredBytes);

/// Bytes of a lookup's ids and gradients on so many bags with so many ids.
int64_t gatheredBytes(const ExchangeLookup &lookup, int64_t dim,
                      int64_t idBytes, WireFormat gradients, int64_t bags,
                      int64_t ids);

/// Of the entries of `local` that have readers. `bags`: of all ranks;
/// `idsOfStream`: those of all ranks, by stream of `local`. `earlier`: that of
/// a step which has one update together with this one, so that each table takes
/// the form that it has there; or null.
ReplicaUpdate makeReplicaUpdate(const ExchangePlan &plan, size_t exchange,
                                const StreamSet &local, int64_t bags,
                                std::span<const int64_t> idsOfStream,
                                const ReplicaUpdate *earlier = nullptr);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_REPLICAUPDATE_H
