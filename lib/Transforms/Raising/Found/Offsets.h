//===- Offsets.h - Ids and offsets of bags ----------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_OFFSETS_H
#define NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_OFFSETS_H

#include "FoundLookup.h"

namespace neuroshard::raising {

/// Ids and per-sample weights from a first offset on, and the offsets from 0
/// on, of a program that may begin anywhere: bag b has the ids
/// [offsets[b], offsets[b + 1]). `count` makes the number of bags. The source
/// of the offsets is the caller's to set.
void useOffsets(FoundLookup &found, mlir::Value ids, Maker offsets, Maker count,
                mlir::Value weights, bool beginAtZero);

/// As torch has it without `include_last_offset`: `offsets` has the begins of
/// the bags, and the last bag ends with the ids.
Maker withLastOffset(mlir::Value offsets, Maker ids);

} // namespace neuroshard::raising

#endif // NEUROSHARD_LIB_TRANSFORMS_RAISING_FOUND_OFFSETS_H
