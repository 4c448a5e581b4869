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

#include <functional>
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

class Shard {
public:
  /// Allocates weights (zero) and state (initial values). Null `memory`: that
  /// of the host.
  Shard(const ShardSpec &spec, const TableSpec &table, ThreadPool &threads,
        const std::shared_ptr<DeviceMemory> &memory);

  const ShardSpec &spec() const { return *shardSpec; }
  const TableSpec &table() const { return *tableSpec; }

  // In memory of the device.
  std::byte *weights() const { return weightMemory.data(); }
  /// State array `index`, null if the optimizer has fewer.
  float *state(size_t index) const;

  /// Bytes from one row of weights to the next.
  int64_t weightStrideBytes() const;
  /// f32 values of one row of state, and from one row to the next.
  int64_t stateWidth() const;
  int64_t stateStride() const;
  bool hasRowState() const;

  int64_t weightBytes() const { return weightMemory.size(); }
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
  void visit(const PageBlock &block, int64_t stride, const Range &rows,
             bool writes, const Visitor &visitor) const;

  const ShardSpec *shardSpec;
  const TableSpec *tableSpec;
  PageBlock weightMemory;
  std::vector<PageBlock> stateMemory;
};

/// Bytes a shard takes, padding included, without allocating it.
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

#endif // NEUROSHARD_LIB_RUNTIME_HOST_SHARD_H
