//===- TrainingRandom.h - Random numbers that are the same everywhere ---*- C++
//-*-===//

#ifndef NEUROSHARD_LIB_TRAINING_PLACEMENT_TRAININGRANDOM_H
#define NEUROSHARD_LIB_TRAINING_PLACEMENT_TRAININGRANDOM_H

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace neuroshard {

/// The standard's engine gives the same numbers with every library, its
/// distributions do not.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}

  /// In [0, 1).
  double uniform() { return static_cast<double>(engine() >> 11) * 0x1p-53; }
  /// In [0, bound).
  size_t below(size_t bound) {
    return static_cast<size_t>(uniform() * static_cast<double>(bound));
  }
  template <typename T> void shuffle(std::vector<T> &values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[below(i)]);
  }

private:
  std::mt19937_64 engine;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_PLACEMENT_TRAININGRANDOM_H
