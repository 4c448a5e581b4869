//===- Random.h - A small random number generator --------------*- C++ -*-===//
//
// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014): any seed is as good as any other.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_RANDOM_H
#define NEUROSHARD_LIB_EMULATOR_RANDOM_H

#include <cstdint>

namespace neuroshard::emulator {

class Random {
public:
  explicit Random(uint64_t seed = 0) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// A number in [0, bound); bound is at least 1.
  uint32_t below(uint32_t bound) {
    return uint32_t((next() >> 32) * bound >> 32);
  }

private:
  uint64_t state;
};

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_RANDOM_H
