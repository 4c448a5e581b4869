//===- Shard.h - Weights and optimizer state of one local shard -*- C++ -*-===//
//
// Rows of weights and of per-element state are padded to 16 bytes
// (nsrt_row_stride); per-row state is one f32 per row. All lie in memory of the
// device, or below it, in host memory or a file, with a cache of rows there.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_SHARD_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_SHARD_H

#include "Host/PageBlock.h"
#include "IoQueue.h"
#include "RowCache.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard::runtime {

/// Rows of one array of a shard in memory of the host.
struct HostRows {
  Range rows; ///< of the table.
  std::byte *first = nullptr;
  int64_t stride = 0; ///< bytes.

  std::byte *row(int64_t tableRow) const {
    return first + (tableRow - rows.begin) * stride;
  }
};

/// What a device brings for its shards.
struct ShardPlaces {
  ThreadPool &threads;
  std::shared_ptr<DeviceMemory> memory; ///< null: that of the host.
  /// Of files; "" if there is none.
  std::string directory;
  IoQueue *io; ///< may be null unless the shard has a cache.
};

class Shard {
public:
  /// Allocates weights (zero) and state (initial values). Throws a RuntimeError
  /// if there is no room for them.
  Shard(const ShardSpec &spec, const TableSpec &table,
        const ShardPlaces &places);

  const ShardSpec &spec() const { return *shardSpec; }
  const TableSpec &table() const { return *tableSpec; }

  // What kernels read and write, in memory of the device: the rows of the shard
  // or, if it has a cache, those at the places of the cache.
  std::byte *weights() const;
  /// State array `index`, null if the optimizer has fewer.
  float *state(size_t index) const;
  /// Null if all rows are in memory.
  RowCache *cache() const { return cached.get(); }

  // All rows: in memory of the device, or of the host if the shard has a cache;
  // then only between a call of expose() and the next step.
  std::byte *allWeights() const;
  float *allState(size_t index) const;
  /// Bytes from one row of weights to the next.
  int64_t weightStrideBytes() const;
  /// f32 values of one row of a state array, and from one row to the next.
  int64_t stateWidth(size_t index) const;
  int64_t stateStride(size_t index) const;
  /// Lets the caller read and write all rows.
  void expose();

  // Of memory: the cache of a shard that has one counts as weights.
  int64_t weightBytes() const;
  int64_t stateBytes() const;

  using Visitor = std::function<void(const HostRows &)>;

  // Calls `visit` with the shard's part of `rows`, rows of the table, where the
  // host can read, or must write, all values. Memory of a device is visited in
  // several parts, as copies.
  void readWeights(const Range &rows, const Visitor &visit) const;
  void writeWeights(const Range &rows, const Visitor &visit);
  void readState(size_t index, const Range &rows, const Visitor &visit) const;
  void writeState(size_t index, const Range &rows, const Visitor &visit);

  /// Writes to every page, so that the operating system provides them now. Does
  /// nothing for memory of a device.
  void touchPages(ThreadPool &threads);

  /// Fills weights with the values of TableInitializer and resets the state.
  void initialize(uint64_t seed, ThreadPool &threads);

private:
  void resetState(ThreadPool &threads);
  void visit(std::byte *all, int64_t stride, const Range &rows, bool writes,
             const Visitor &visitor) const;

  const ShardSpec *shardSpec;
  const TableSpec *tableSpec;
  // Of a shard without a cache.
  PageBlock weightMemory;
  std::vector<PageBlock> stateMemory;
  std::unique_ptr<RowCache> cached;
};

/// Bytes of memory a shard takes, padding included, without allocating it.
int64_t shardBytes(const ShardSpec &spec, const TableSpec &table);

/// Calls function(row) for all rows, on all threads.
template <typename Function>
void forRows(ThreadPool &threads, const Range &rows, const Function &function) {
  constexpr int64_t kRowsPerTask = 4096;
  threads.parallelFor((rows.size() + kRowsPerTask - 1) / kRowsPerTask,
                      [&](int64_t task) {
                        int64_t begin = rows.begin + task * kRowsPerTask;
                        int64_t end = std::min(begin + kRowsPerTask, rows.end);
                        for (int64_t row = begin; row < end; ++row)
                          function(row);
                      });
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_SHARD_H
