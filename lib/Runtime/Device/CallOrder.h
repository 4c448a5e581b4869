//===- CallOrder.h - Order of exchanges and updates of a rank --*- C++ -*-===//
//
// Messages do not say which input they belong to: ranks exchange the results
// and gradients of all inputs in the same order. They also update by the same
// learning rates, or copies of a table drift apart. Each rank keeps a hash of
// its own calls, which travels in the header of the next ids (IdHeader.h), so
// that a rank with others is noticed there.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_CALLORDER_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_CALLORDER_H

#include "neuroshard/Support/Random.h"

#include <bit>
#include <cstdint>
#include <span>

namespace neuroshard::runtime {

enum class Exchanged : uint64_t { Results, Gradients };

class CallOrder {
public:
  /// Numbers the inputs in the order in which their ids are sent.
  int64_t addInput() { return numInputs++; }

  /// Adds the exchange of what belongs to an input.
  void add(Exchanged what, int64_t input) {
    uint64_t call =
        2 * static_cast<uint64_t>(input) + static_cast<uint64_t>(what);
    mix(call);
  }

  /// Adds an update by a learning rate, the one with number `step`; `ofTables`:
  /// rates of their own.
  void addUpdate(float learningRate, std::span<const float> ofTables,
                 int64_t step) {
    mix(std::bit_cast<uint32_t>(learningRate));
    for (float rate : ofTables)
      mix(std::bit_cast<uint32_t>(rate));
    mix(static_cast<uint64_t>(step));
  }

  /// Adds an average of copies that drift, which the caller has asked for.
  void addAverage() { mix(~uint64_t{0}); }

  /// Adds what the next ids are for, by a number that the caller gives it.
  void addPurpose(int64_t purpose) { mix(static_cast<uint64_t>(purpose)); }

  int64_t hash() const { return static_cast<int64_t>(state); }

private:
  void mix(uint64_t call) { state = SplitMix64(state ^ call).next(); }

  int64_t numInputs = 0;
  uint64_t state = 0;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_CALLORDER_H
