//===- LookupParts.h - Inputs and outputs of lookups ------------*- C++ -*-===//
//
// A part is the ids of one lookup on one slot and the place of its results.
// Checks parts of a caller, and makes parts from whole jagged inputs.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_STEP_LOOKUPPARTS_H
#define NEUROSHARD_LIB_RUNTIMECUDA_STEP_LOOKUPPARTS_H

#include "Binding.h"
#include "Part.h"

#include <span>
#include <vector>

namespace neuroshard::cuda {

/// Largest stride of results and gradients, in elements: larger than a device's
/// memory, and small enough that no address overflows.
constexpr int64_t kMaxStride = int64_t{1} << 40;

/// Rows of results of a part: its bags, or its ids if it is not pooled.
inline int64_t itemsOf(const GpuLookup &lookup, const Part &part) {
  return lookup.pooled && !part.isSummed ? part.bags
                                         : part.id_end - part.id_begin;
}

/// One part per lookup; see nsc_make_parts. Throws a RuntimeError.
std::vector<Part> makeParts(const Binding &binding,
                            std::span<const nsc_input> inputs,
                            std::span<const nsc_output> outputs);

/// Throws a RuntimeError that names the part if the kernels cannot run it.
void checkParts(const Binding &binding, std::span<const Part> parts,
                bool training);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_STEP_LOOKUPPARTS_H
