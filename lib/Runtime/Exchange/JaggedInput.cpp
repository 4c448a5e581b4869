//===- JaggedInput.cpp - The shape of the local batch ---------------------===//
//
// Checks the offsets of a jagged input and finds the ids that each lookup
// reads.
//
//===----------------------------------------------------------------------===//

#include "IdExchange.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <limits>

namespace neuroshard::runtime {
namespace {

void checkShape(const ExchangeSpec &spec, const JaggedInput &input) {
  int64_t features = static_cast<int64_t>(spec.features.size());
  if (input.numIds < 0)
    fail(spec.where, "negative number of ids ", input.numIds);
  if (input.numOffsets < 1 || (input.numOffsets - 1) % features != 0)
    fail(spec.where, "expected features x batch + 1 offsets (", features,
         " features), found ", input.numOffsets);
  if (!input.offsets || (input.numIds > 0 && !input.ids))
    fail(spec.where, "ids or offsets are null");
  if (spec.weighted && input.numIds > 0 && !input.weights)
    fail(spec.where, "the input is weighted, but its weights are null");
}

constexpr int64_t kLargestBag = std::numeric_limits<int32_t>::max();

/// Whether no offset is less than the one before it or larger by more than
/// kLargestBag; the first is 0. Differences may wrap around: a wrong one could
/// pass for a right one only after 2^32 offsets.
bool bagsAreSized(const int64_t *offsets, int64_t bags) {
  uint64_t bad = 0; // sign bit: a bad bag. No early exit, to vectorise
  for (int64_t i = 0; i < bags; ++i) {
    uint64_t size = static_cast<uint64_t>(offsets[i + 1]) -
                    static_cast<uint64_t>(offsets[i]);
    bad |= size | (static_cast<uint64_t>(kLargestBag) - size);
  }
  return static_cast<int64_t>(bad) >= 0;
}

void checkLastOffset(const ExchangeSpec &spec, const JaggedInput &input) {
  int64_t last = input.offsets[input.numOffsets - 1];
  if (last != input.numIds)
    fail(spec.where, "the last offset must be the number of ids ", input.numIds,
         ", found ", last);
}

void checkOffsets(const ExchangeSpec &spec, const JaggedInput &input) {
  const int64_t *offsets = input.offsets;
  int64_t last = input.numOffsets - 1;
  if (offsets[0] != 0)
    fail(spec.where, "offsets must start at 0, found ", offsets[0]);
  if (bagsAreSized(offsets, last)) // the usual case, in a fast loop
    return checkLastOffset(spec, input);
  for (int64_t i = 0; i < last; ++i) {
    if (offsets[i + 1] < offsets[i] ||
        offsets[i + 1] - offsets[i] > kLargestBag)
      fail(spec.where,
           "offsets must not decrease and bags "
           "hold less than 2^31 ids: offset ",
           i, " is ", offsets[i], ", the next ", offsets[i + 1]);
  }
}

} // namespace

void describeBatch(const Device &device, const JaggedInput &input,
                   Routed &routed) {
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  int64_t features = static_cast<int64_t>(spec.features.size());
  routed.batch = std::max<int64_t>(0, (input.numOffsets - 1) / features);
  routed.numIds = std::max<int64_t>(0, input.numIds);
  routed.lookups.resize(spec.lookups.size());
  routed.buckets.resize(device.layout(routed.exchange).buckets.size());
  for (size_t k = 0; k < spec.lookups.size(); ++k)
    if (spec.lookups[k].pooled())
      routed.lookups[k].resultRows = routed.batch;

  checkShape(spec, input);
  checkOffsets(spec, input);
  for (size_t k = 0; k < spec.lookups.size(); ++k) {
    const ExchangeLookup &lookup = spec.lookups[k];
    LookupState &state = routed.lookups[k];
    int64_t begin = input.offsets[lookup.feature * routed.batch];
    int64_t end = input.offsets[(lookup.feature + 1) * routed.batch];
    state.firstId = begin;
    state.numIds = end - begin;
    if (!lookup.pooled())
      state.resultRows = state.numIds;
  }
}

} // namespace neuroshard::runtime
