//===- ExchangeBuffers.h - Inputs to the buffers of an exchange -*- C++ -*-===//
//
// The numbers from which the buffers of one exchange are counted on either
// engine.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_ARTIFACT_STEP_EXCHANGEBUFFERS_H
#define NEUROSHARD_LIB_ARTIFACT_STEP_EXCHANGEBUFFERS_H

#include "ExchangeCounts.h"
#include "neuroshard/Artifact/BufferBytes.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

#include <vector>

namespace neuroshard {

inline constexpr int64_t kFloatBytes = 4, kIndexBytes = 8;

class ExchangeBuffers : protected ExchangeCounts {
public:
  ExchangeBuffers(const ExchangePlan &plan, size_t exchange,
                  const ExchangeLayout &layout, const StepLoad &load,
                  std::vector<BufferBytes> &devices)
      : ExchangeCounts(plan.exchanges[exchange], load.exchanges[exchange]),
        plan(plan), layout(layout), wire(elementBytes(plan.wireType)),
        isCast(plan.wireType != ElementType::F32), travels(count > 1),
        devices(devices) {
    for (int64_t batch : this->load.batches)
      bags += batch;
  }

protected:
  const ExchangeLookup &lookupOf(int32_t index) const {
    return spec.lookups[static_cast<size_t>(index)];
  }

  const ExchangePlan &plan;
  const ExchangeLayout &layout;
  int64_t wire;
  bool isCast;
  bool travels;     ///< there are other ranks.
  int64_t bags = 0; ///< samples of all ranks.
  std::vector<BufferBytes> &devices;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_STEP_EXCHANGEBUFFERS_H
