//===- RowCache.h - Cached rows of a shard in a lower tier ------*- C++ -*-===//
//
// Rows that batches use are brought into device memory before kernels read
// them, from the ids of the batch, and changed rows are written back when they
// leave: the values are those of a shard that is all in device memory. Calls
// may come from any thread; transfers happen on that of the IoQueue, in the
// order of the calls.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_ROWCACHE_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_ROWCACHE_H

#include "CacheIndex.h"
#include "Host/PageBlock.h"
#include "IoQueue.h"
#include "RowStore.h"
#include "neuroshard/Artifact/ExchangePlan.h"
#include "neuroshard/Runtime/Backend.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Ids of a batch and where their rows' places are written, in the type of the
/// ids.
struct IdRun {
  const std::byte *ids;
  std::byte *places;
  int64_t count;
  int32_t idBytes;
};

/// What the batches so far have used, in distinct rows of each batch.
struct CacheFigures {
  int64_t batches = 0;
  int64_t rows = 0;        ///< of all batches.
  int64_t hits = 0;        ///< that were there.
  int64_t written = 0;     ///< rows that were written back.
  int64_t mostSpilled = 0; ///< at a time.
  int64_t waitNanoseconds = 0;
};

class RowCache {
public:
  /// In `memory`; null: that of the host. The queue must outlive it.
  RowCache(const ShardSpec &shard, const TableSpec &table,
           std::unique_ptr<RowStore> store, IoQueue &io,
           const std::shared_ptr<DeviceMemory> &memory);
  /// Waits for transfers.
  ~RowCache() { finish(); }

  /// What copies rows to memory of the device, before the first of them; null
  /// if that is the host's. It may go after finish().
  void copyBy(RowCopies *rowCopies) { copies = rowCopies; }
  /// Waits for all transfers.
  void finish() noexcept;

  // The arrays of rows by place: those of the sets, then what has spilled.
  std::byte *weights() const { return arrays[0].data(); }
  /// State array `index`; it must have one.
  float *state(size_t index) const;

  /// The rows of the shard; current after flush().
  const RowStore &rows() const { return *store; }
  /// Of state array `index` in a record.
  int64_t stateOffset(size_t index) const { return parts[index + 1].offset; }

  /// Starts to bring the rows of a batch. Returns what release() needs.
  CacheBatch fetch(std::span<const IdRun> runs);
  /// Waits for the rows of a batch and of those before it.
  void wait(const CacheBatch &batch);
  /// An update is about to change the rows at these places. Waits for those
  /// that are read again.
  void markChanged(std::span<const int64_t> places);
  /// What goes wrong, later waits throw.
  void release(const CacheBatch &batch);

  /// Writes all changed rows to the store.
  void flush();
  /// The same, for a caller that will write to the store: rows are read again
  /// before they are used.
  void expose();

  CacheFigures figures() const;
  /// Rows it has room for.
  int64_t capacity() const { return spec.rows; }

private:
  template <typename Id>
  void find(std::span<const IdRun> runs, size_t number, CacheBatch &batch);
  void admitMissing(std::span<const IdRun> runs, CacheBatch &batch);
  void giveRoom();
  CacheBatch takeRows(std::span<const IdRun> runs);
  int64_t start(IoDirection direction, std::vector<CachedRow> moved);
  void copyStaged(RowIo &rowIo, IoDirection direction,
                  std::span<const CachedRow> moved,
                  const RowCopies::Point &point) const;
  void readAgain();
  void settle();
  void failLater(const std::exception &error);

  CacheSpec spec;
  std::unique_ptr<RowStore> store;
  std::vector<PageBlock> arrays; ///< weights, then states.
  std::vector<RecordPart> parts; ///< of each array.
  IoQueue &io;
  RowCopies *copies = nullptr;

  mutable std::mutex mutex;
  CacheIndex index;
  /// Of the batch that is brought: index of the run and id, row.
  struct Missing {
    size_t run;
    int64_t id;
    int64_t row;
  };
  std::vector<Missing> missing;
  int64_t lastJob = 0;
  int64_t lastRead = 0; ///< job of rows that are read again.
  bool isExposed = false;
  CacheFigures sums;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_ROWCACHE_H
