//===- StepBuffers.h - Bytes of the buffers of one step ---------*- C++ -*-===//
//
// What each device takes for ids, results, gradients and the update of one
// training step, by kind, from the layout of the exchanges, the batches and the
// numbers of ids alone. Bytes are those asked for: allocators round up, and
// reuse what an earlier phase gave back. The arrays in which kernels on GPUs
// update tables are those of UpdateBuffers.h.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_STEPBUFFERS_H
#define NEUROSHARD_ARTIFACT_STEPBUFFERS_H

#include "neuroshard/Artifact/BufferBytes.h"
#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/StepLoad.h"

#include <vector>

namespace neuroshard {

/// Of each device, in a training step of all exchanges. A runtime of several
/// processes also receives messages into memory: stepTraffic() has their bytes.
std::vector<BufferBytes> stepBuffers(const ExchangePlan &plan,
                                     const std::vector<ExchangeLayout> &layouts,
                                     const StepLoad &load, Engine engine);

/// The same of a step without gradients.
std::vector<BufferBytes>
lookupBuffers(const ExchangePlan &plan,
              const std::vector<ExchangeLayout> &layouts, const StepLoad &load,
              Engine engine);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_STEPBUFFERS_H
