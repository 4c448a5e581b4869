//===- StepBuffersOnGpus.h - Buffers of a step of GPU ranks -----*- C++ -*-===//
//
// The tensors of the engine of PyTorch on GPUs: python/neuroshard/distributed/
// _gpu. What routing and casting take for a moment only is left out.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_ARTIFACT_STEP_STEPBUFFERSONGPUS_H
#define NEUROSHARD_LIB_ARTIFACT_STEP_STEPBUFFERSONGPUS_H

#include "neuroshard/Artifact/BufferBytes.h"
#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/StepLoad.h"

#include <vector>

namespace neuroshard {

std::vector<BufferBytes>
stepBuffersOnGpus(const ExchangePlan &plan,
                  const std::vector<ExchangeLayout> &layouts,
                  const StepLoad &load);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_STEP_STEPBUFFERSONGPUS_H
