//===- BadIds.h - Ids out of range ------------------------------*- C++ -*-===//
//
// On GPUs, kernels find them: RuntimeCuda/Step/BadIds.h.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_BADIDS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_BADIDS_H

#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/Backend.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace neuroshard::runtime {

/// Negative if id < 0 or id > lastRow: a sign bit, so that loops over ids
/// vectorise.
template <typename Id> Id outOfRange(Id id, Id lastRow) {
  using Unsigned = std::make_unsigned_t<Id>;
  return id | Id(Unsigned(lastRow) - Unsigned(id));
}

template <typename Id> Id lastRowOf(int64_t rows) {
  return Id(std::min<int64_t>(rows - 1, std::numeric_limits<Id>::max()));
}

/// Throws a RuntimeError that names the id at this position of the input, which
/// is out of range for the table of the lookup. `batch`: bags of each feature.
[[noreturn]] void throwBadIdAt(int64_t position, const ExchangeSpec &spec,
                               int32_t lookup, const JaggedInput &input,
                               const Manifest &manifest, int64_t batch);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_BADIDS_H
