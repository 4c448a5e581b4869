//===- UpdateInputs.h - Inputs of the update kernels ------------*- C++ -*-===//
//
// For each slot that has ids in a step: its distinct rows and the places of
// their gradients.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_UPDATEINPUTS_H
#define NEUROSHARD_LIB_RUNTIME_STEP_UPDATEINPUTS_H

#include "Device/Device.h"
#include "RowSort.h"

#include <map>
#include <optional>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// The ids of one lookup on a slot and the places of their gradients.
struct GradientSource {
  const ReceivedSet *set;
  const ReceivedStream *stream;
  size_t exchange; ///< index into the step's exchanges.
  int32_t idBytes;
  bool pooled;
  std::optional<int64_t> padding; ///< row of the shard that gets no gradient.
  /// First gradient row of each peer, as an offset in floats.
  std::vector<int64_t> beginOfPeer;
  int64_t stride;
  int64_t firstNumber; ///< number of its first id among the slot's ids.
};

struct SlotUpdate {
  size_t slot = 0;
  std::vector<GradientSource> sources; ///< by exchange and lookup.
  int64_t numIds = 0;                  ///< padding included.
  const SortedRows *sorted = nullptr;
  Buffer gradientOffsets; ///< i64 [sorted->numIds].
  Buffer sampleWeights;   ///< f32 [sorted->numIds]; weighted slots only.
  const float *gradients = nullptr;
  // Two-phase optimizers only.
  Buffer reduced;
  Buffer norms;
};

/// Fills `offsets` with the place of each gradient of a source, in the order
/// of its ids.
void fillGradientOffsets(const GradientSource &source, int64_t *offsets);

class UpdateInputs {
public:
  UpdateInputs(Device &device, std::span<Routed *const> routed,
               std::span<Partials *const> gradients);

  /// The slots that have ids in this step, sorted.
  std::vector<SlotUpdate> slots;

private:
  void collect(size_t exchange);
  void addSource(size_t exchange, const EntryLayout &entry,
                 const ReceivedSet &set, const std::vector<Block> &blocks,
                 const StreamSet &layout);
  void chooseGradients();
  void mergeGradients();
  void sort();
  void sortGroup(const SlotUpdate &slot, SortedRows &sorted);
  void fillSlot(SlotUpdate &slot);

  Device &device;
  std::span<Routed *const> routed;
  std::span<Partials *const> gradients;
  std::vector<SlotUpdate> allSlots;
  Buffer merged;
  /// Slots that read the same streams share a sort.
  std::map<std::vector<const ReceivedStream *>, SortedRows> groups;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_UPDATEINPUTS_H
