//===- DirectLookup.h - Lookups without a step -----------------*- C++ -*-===//
//
// For serving: answers in the caller's thread, several at a time, from tables
// that do not change. No exchange, no state, no allocation but for bags that
// leave ids out.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_WORLD_DIRECTLOOKUP_H
#define NEUROSHARD_LIB_RUNTIME_WORLD_DIRECTLOOKUP_H

#include "World.h"

namespace neuroshard::runtime {

/// The ids of one call.
struct DirectRequest {
  /// numOffsets is not read.
  JaggedInput input;
  /// Bags of each feature.
  int64_t batch = 0;
  /// Ids out of range are left out of their bags.
  bool dropsUnknown = false;
  /// In place of input.weights: by feature, one for each id of the feature, or
  /// null where no lookup reads them.
  const float *const *featureWeights = nullptr;
};

/// Runs all lookups of the input; lookup i writes its f32 rows to outs[i],
/// strides[i] values apart. Ids out of range throw a RuntimeError, or are left
/// out of their bags as padding is (an unpooled lookup gives zeros for them),
/// and so does a world that is not one device of the host with one input, whole
/// tables and all rows in memory.
void lookUpDirectly(const nsrt_world &world, DirectRequest request,
                    float *const *outs, const int64_t *strides);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_WORLD_DIRECTLOOKUP_H
