//===- Dice.h - Random draws that are the same everywhere -------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_DICE_H
#define NEUROSHARD_TOOLS_BENCH_DICE_H

#include <cstdint>
#include <initializer_list>
#include <random>

namespace neuroshard {

/// Draws without std distributions, which differ between libraries.
class Dice {
public:
  explicit Dice(uint64_t seed) : engine(seed) {}
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() %
                                      static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return in(1, 100) <= percent; }
  template <typename T> T of(std::initializer_list<T> values) {
    return values.begin()[in(0, static_cast<int64_t>(values.size()) - 1)];
  }

private:
  std::mt19937_64 engine;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_BENCH_DICE_H
