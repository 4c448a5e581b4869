//===- RowSums.h - Gradients added up by row on CPUs ------------*- C++ -*-===//
//
// Sums of all rows of a table, which has few of them: gradients are added where
// the sums are, without a sort.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_ROWSUMS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_ROWSUMS_H

#include "Host/BufferPool.h"
#include "Shards/Shard.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <span>

namespace neuroshard::runtime {

/// As Backend::addUpRows.
void addUpRows(const nsrt_program &program, std::span<const GradientPart> parts,
               std::span<const SlotSums> sums, ThreadPool &threads);

/// As Backend::updateRows.
void updateRows(const nsrt_program &program, std::span<const Shard> shards,
                std::span<const SlotSums> sums,
                std::span<const StepSize> stepSizes, BufferPool &buffers,
                ThreadPool &threads);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_ROWSUMS_H
