//===- DiskRates.h - How fast rows come from a disk -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_SHARDS_DISKRATES_H
#define NEUROSHARD_LIB_RUNTIME_SHARDS_DISKRATES_H

#include <cstdint>
#include <string>

namespace neuroshard::runtime {

struct DiskRates {
  double readsPerSecond; ///< of 4 KiB, at random.
  double bytesPerSecond; ///< one after the other.
};

/// Measured by the transfers of a RowFile of so many bytes, which it writes in
/// `directory` first. Throws a RuntimeError if the directory cannot hold it.
DiskRates measureDisk(const std::string &directory, int64_t bytes);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_SHARDS_DISKRATES_H
