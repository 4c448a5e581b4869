//===- Random.h - Generators that draw the same everywhere ------*- C++ -*-===//
//
// The distributions of the standard library draw other numbers with other
// libraries. These draw the same on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SUPPORT_RANDOM_H
#define NEUROSHARD_SUPPORT_RANDOM_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

namespace neuroshard {

/// A generator of 8 bytes (Steele, Lea, Flood: Fast splittable pseudorandom
/// number generators, OOPSLA 2014). Any seed is as good as any other.
class SplitMix64 {
public:
  explicit SplitMix64(uint64_t seed = 0) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [0, count); `count` is at least 1 and at most 2^32.
  int64_t below(uint64_t count) {
    return static_cast<int64_t>(((next() >> 32) * count) >> 32);
  }
  /// In [0, 1).
  double real() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

/// The 64-bit Mersenne Twister, whose state the standard fixes (2.5 KB).
class MersenneTwister {
public:
  explicit MersenneTwister(uint64_t seed) : engine(seed) {}

  uint64_t next() { return engine(); }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// In [0, bound).
  size_t below(size_t bound) {
    return static_cast<size_t>(uniform() * static_cast<double>(bound));
  }
  /// In [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low +
           static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  /// True in `percent` of 100 draws.
  bool chance(int percent) { return between(1, 100) <= percent; }
  /// One of `values`, which are not empty.
  template <typename T> T oneOf(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<int64_t>(values.size()) - 1)];
  }
  template <typename T> void shuffle(std::vector<T> &values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[below(i)]);
  }

private:
  std::mt19937_64 engine;
};

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_RANDOM_H
