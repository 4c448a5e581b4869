//===- WeightGradients.h - Gradients of sample weights ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_WEIGHTGRADIENTS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_WEIGHTGRADIENTS_H

#include "Host/BufferPool.h"
#include "Shards/Shard.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <span>

namespace neuroshard::runtime {

/// Writes one value for each id of the parts.
void runWeightGradients(const nsrt_program &program,
                        std::span<const Shard> shards,
                        std::span<const WeightGradientPart> parts,
                        BufferPool &buffers, ThreadPool &threads);

/// As Backend::addAtPlaces.
void addAndDivide(std::span<const PlacedValues> values, float *out,
                  int64_t count, float divisor, ThreadPool &threads);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_WEIGHTGRADIENTS_H
