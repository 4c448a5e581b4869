//===- Shard.h - Weights and optimizer state of one local shard -*- C++ -*-===//
//
// Rows of weights and of per-element state are padded to 16 bytes
// (nsrt_row_stride); per-row state is one f32 per row.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_HOST_SHARD_H
#define NEUROSHARD_LIB_RUNTIME_HOST_SHARD_H

#include "PageBlock.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <vector>

namespace neuroshard::runtime {

class Shard {
public:
  /// Allocates weights (zero) and state (initial values).
  Shard(const ShardSpec &spec, const TableSpec &table, ThreadPool &threads,
        const std::shared_ptr<MemorySource> &source);

  const ShardSpec &spec() const { return *shardSpec; }
  const TableSpec &table() const { return *tableSpec; }

  std::byte *weights() const { return weightMemory.data(); }
  /// State array `index`, null if the optimizer has fewer.
  float *state(size_t index) const;

  /// Bytes from one row of weights to the next.
  int64_t weightStrideBytes() const;
  /// f32 values of one row of state, and from one row to the next.
  int64_t stateWidth() const;
  int64_t stateStride() const;
  bool hasRowState() const;

  /// First byte of table element (row, spec().cols.begin).
  std::byte *weightRow(int64_t tableRow) const;
  float *stateRow(size_t index, int64_t tableRow) const;

  int64_t weightBytes() const { return weightMemory.size(); }
  int64_t stateBytes() const;

  /// Writes to every page, so that the operating system provides them now.
  void touchPages(ThreadPool &threads);

  /// Fills weights with the values of TableInitializer and resets the state.
  void initialize(uint64_t seed, ThreadPool &threads);

private:
  void resetState(ThreadPool &threads);

  const ShardSpec *shardSpec;
  const TableSpec *tableSpec;
  PageBlock weightMemory;
  std::vector<PageBlock> stateMemory;
};

/// Bytes a shard takes, padding included, without allocating it.
int64_t shardBytes(const ShardSpec &spec, const TableSpec &table);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_HOST_SHARD_H
