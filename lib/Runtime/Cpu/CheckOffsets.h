//===- CheckOffsets.h - Validation of the offsets of a batch ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_CHECKOFFSETS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_CHECKOFFSETS_H

#include "neuroshard/Runtime/Backend.h"

namespace neuroshard::runtime {

/// Throws a RuntimeError unless offsets start at 0, never decrease, end at the
/// number of ids, and no bag has 2^31 ids.
void checkOffsets(const ExchangeSpec &spec, const JaggedInput &input);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_CHECKOFFSETS_H
