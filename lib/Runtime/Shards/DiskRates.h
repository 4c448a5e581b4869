//===- DiskRates.h - Throughput of a disk -----------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_DISKRATES_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_DISKRATES_H

#include <cstdint>
#include <string>

namespace neuroshard::runtime {

struct DiskRates {
  /// Of rows at random, of which as many are written back as are read; a
  /// write-back counts twice, as it reads blocks of the disk first.
  double transfersPerSecond;
  double bytesPerSecond; ///< one after the other.
};

/// Measured by the transfers of a RowFile of so many bytes, which it writes in
/// `directory` first. Throws a RuntimeError if the directory cannot hold it.
DiskRates measureDisk(const std::string &directory, int64_t bytes);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_DISKRATES_H
