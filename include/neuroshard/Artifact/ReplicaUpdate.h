//===- ReplicaUpdate.h - Gradients of replicated tables ---------*- C++ -*-===//
//
// All copies of a replicated table are updated by the gradients of all ranks.
// In each step these travel in the form that takes fewer bytes, by table:
//
//  - Gathered: every rank gets the ids and gradients of all ranks.
//  - Row sums: every rank adds its own gradients up by row, and the sums are
//    all-reduced. Each rank gets a section of the sums of all ranks, adds them
//    in rank order, and sends the totals to all.
//
// The row sums of an exchange are one array of f32: the rows of its tables,
// each padded to 16 bytes, then one number for each row, above 0 if the row has
// gradients in this step. All ranks know the numbers of ids that decide.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_REPLICAUPDATE_H
#define NEUROSHARD_ARTIFACT_REPLICAUPDATE_H

#include "neuroshard/Artifact/ExchangeLayout.h"

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
  /// By summed entry: the number of its table in `tables`.
  std::vector<size_t> tableOfEntry;
  int64_t numSums = 0; ///< values of the array of row sums.

  /// The sums that `rank` of `ranks` adds up; a multiple of 16 bytes of f32.
  Range section(size_t rank, size_t ranks) const;
};

/// Bytes that each rank receives, and sends, of the sums of a table and of
/// their totals, with what stays on it.
int64_t rowSumBytes(int64_t rows, int64_t dim, ElementType gradients);

/// Whether row sums of a table take fewer bytes than `gatheredBytes`, those of
/// the ids and gradients of all ranks.
bool sendsRowSums(int64_t rows, int64_t dim, ElementType gradients,
                  int64_t gatheredBytes);

/// Bytes of a lookup's ids and gradients on so many bags with so many ids.
int64_t gatheredBytes(const ExchangeLookup &lookup, int64_t dim,
                      int64_t idBytes, ElementType gradients, int64_t bags,
                      int64_t ids);

/// `bags`: of all ranks; `idsOfStream`: those of all ranks, by stream of
/// `local`.
ReplicaUpdate makeReplicaUpdate(const ExchangePlan &plan, size_t exchange,
                                const StreamSet &local, int64_t bags,
                                std::span<const int64_t> idsOfStream);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_REPLICAUPDATE_H
