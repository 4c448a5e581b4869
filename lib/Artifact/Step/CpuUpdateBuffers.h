//===- CpuUpdateBuffers.h - Buffers of an update on CPUs --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_STEP_CPUUPDATEBUFFERS_H
#define NEUROSHARD_LIB_ARTIFACT_STEP_CPUUPDATEBUFFERS_H

#include "neuroshard/Artifact/BufferBytes.h"
#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/StepLoad.h"

#include <vector>

namespace neuroshard {

/// Adds the sorts and sums of an update on CPUs to the bytes of each device.
void addCpuUpdateBuffers(const ExchangePlan &plan,
                         const std::vector<ExchangeLayout> &layouts,
                         const StepLoad &load,
                         std::vector<BufferBytes> &devices);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_STEP_CPUUPDATEBUFFERS_H
