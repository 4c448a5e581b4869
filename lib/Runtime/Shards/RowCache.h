//===- RowCache.h - Cached rows of a shard in a file ------------*- C++ -*-===//
//
// Rows that batches use are brought into memory before kernels read them, from
// the ids of the batch, and changed rows are written back when they leave: the
// values are those of a shard that is all in memory. Calls may come from any
// thread; transfers happen on that of the IoQueue, in the order of the calls.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_ROWCACHE_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_ROWCACHE_H

#include "CacheIndex.h"
#include "Host/PageBlock.h"
#include "IoQueue.h"
#include "RowFile.h"
#include "neuroshard/Artifact/ExchangePlan.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
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
};

class RowCache {
public:
  /// Makes the file in `directory`. The queue must outlive it.
  RowCache(const ShardSpec &shard, const TableSpec &table,
           const std::string &directory, IoQueue &io);
  /// Waits for transfers.
  ~RowCache();

  // The arrays of rows by place: those of the sets, then what has spilled.
  std::byte *weights() const { return arrays[0].data(); }
  /// State array `index`; it must have one.
  float *state(size_t index) const;

  /// The rows of the shard; current after flush().
  const RowFile &rows() const { return file; }
  /// Of state array `index` in a record.
  int64_t stateOffset(size_t index) const { return parts[index + 1].offset; }

  /// Starts to bring the rows of a batch. Returns what release() needs.
  CacheBatch fetch(std::span<const IdRun> runs);
  /// Waits for the rows of a batch and of those before it.
  void wait(const CacheBatch &batch);
  /// Waits for rows that must be read again; to be called before rows in use
  /// are read or changed.
  void settle();
  /// Rows of a batch that has been waited for and is not released.
  void findPlaces(std::span<const int64_t> rowsOfBatch, int64_t *places) const;
  /// An update changes the rows at these places.
  void markChanged(std::span<const int64_t> places);
  void release(const CacheBatch &batch);

  /// Writes all changed rows to the file.
  void flush();
  /// The same, for a caller that will write to the file: rows are read again
  /// before they are used.
  void expose();

  CacheFigures figures() const;
  /// Rows it has room for.
  int64_t capacity() const { return spec.rows; }

private:
  template <typename Id>
  void find(std::span<const IdRun> runs, size_t number, CacheBatch &batch);
  void admitMissing(std::span<const IdRun> runs, CacheBatch &batch);
  int64_t start(IoDirection direction, std::vector<CachedRow> moved);
  void readAgain();

  CacheSpec spec;
  RowFile file;
  std::vector<PageBlock> arrays; ///< weights, then states.
  std::vector<RecordPart> parts; ///< of each array.
  IoQueue &io;

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
