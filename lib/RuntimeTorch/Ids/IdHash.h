//===- IdHash.h - Hash of ids, and the ranks that own them ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDHASH_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDHASH_H

#include "neuroshard/Runtime/Initializer.h"

#include <cstdint>

namespace neuroshard::runtime {

inline uint64_t hashId(int64_t id) {
  return mixBits(static_cast<uint64_t>(id));
}

/// The rank that owns the part of the map that an id belongs to, by the upper
/// bits of its hash. Hash tables use the lower ones.
inline int32_t ownerOfHash(uint64_t hash, int32_t ranks) {
  return static_cast<int32_t>(((hash >> 32) * static_cast<uint64_t>(ranks)) >>
                              32);
}

inline int32_t ownerOfId(int64_t id, int32_t ranks) {
  return ownerOfHash(hashId(id), ranks);
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDHASH_H
