//===- Batch.h - Size and types of a batch ----------------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_BATCH_H
#define NEUROSHARD_MODEL_BATCH_H

#include "neuroshard/Model/Types.h"
#include "neuroshard/Model/WireType.h"

#include <cstdint>

namespace neuroshard {

/// A step's batch over all devices, and the types of its ids and results.
struct Batch {
  /// Samples over all devices.
  int64_t globalSize = 0;
  IdType idType = IdType::I64;
  ElementType outputType = ElementType::F32;
  /// In which results and gradients travel.
  WireType wireType;
  /// Copies of the ids that a pipelined input keeps.
  int inputCopies = 2;
  /// Backwards whose gradients make one update.
  int backwards = 1;

  bool operator==(const Batch &) const = default;
};

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_BATCH_H
