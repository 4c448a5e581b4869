//===- Initializer.h - Initial weights of tables ---------------*- C++ -*-===//
//
// A counter-based generator: a value depends on seed, table name, row and
// column only. So every plan has the same weights, and shards can be filled in
// any order on any device.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_INITIALIZER_H
#define NEUROSHARD_RUNTIME_INITIALIZER_H

#include "neuroshard/Artifact/Manifest.h"

#include <cmath>

namespace neuroshard::runtime {

/// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every input
/// bit changes every output bit with probability about one half.
inline uint64_t mixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Uniform values in [-1/sqrt(rows), 1/sqrt(rows)).
class TableInitializer {
public:
  TableInitializer(const TableSpec &table, uint64_t seed)
      : largest(static_cast<float>(1.0 /
                                   std::sqrt(static_cast<double>(table.rows)))),
        key(mixBits(seed)) {
    for (char character : table.name)
      key = mixBits(key ^ static_cast<unsigned char>(character));
  }

  /// 24 random bits as a multiple of 2^-23 in [-1, 1), times the bound.
  float value(int64_t row, int64_t column) const {
    uint64_t bits = mixBits(mixBits(key ^ static_cast<uint64_t>(row)) ^
                            static_cast<uint64_t>(column)) >>
                    40;
    return (static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-23f - 1.0f) *
           largest;
  }

  float bound() const { return largest; }

private:
  float largest;
  uint64_t key;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_INITIALIZER_H
