//===- CopyReaders.h - Which copy of a shard each rank reads ----*- C++ -*-===//

#ifndef NEUROSHARD_ARTIFACT_COPYREADERS_H
#define NEUROSHARD_ARTIFACT_COPYREADERS_H

#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// The device whose copy a rank reads: its own, else one of its group, else any
/// one. Of several the ranks take an even part each, in their order.
/// `devices`: those with a copy, ascending.
int32_t nearestCopy(const DeviceGroups &groups,
                    const std::vector<int32_t> &devices, int32_t rank);

/// The ranks that read each copy, in the order of `devices`.
std::vector<Readers> readersOfCopies(const DeviceGroups &groups,
                                     const std::vector<int32_t> &devices);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_COPYREADERS_H
