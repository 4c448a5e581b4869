//===- CheckOffsets.cpp - Validation of the offsets of a batch ------------===//

#include "CheckOffsets.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/InputName.h"

#include <algorithm>
#include <limits>
#include <string>

namespace neuroshard::runtime {
namespace {

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
    fail(inputName(spec), "the last offset must be the number of ids ",
         input.numIds, ", found ", last);
}

/// Of the bag that begins at offset i, by its feature: callers may have the
/// offsets of each in a tensor of its own, from 0.
[[noreturn]] void failAtOffset(const ExchangeSpec &spec,
                               const JaggedInput &input, int64_t i) {
  int64_t batch =
      (input.numOffsets - 1) /
      std::max<int64_t>(1, static_cast<int64_t>(spec.features.size()));
  int64_t feature = i / batch, begin = input.offsets[i],
          end = input.offsets[i + 1], first = input.offsets[feature * batch];
  std::string ofInput;
  if (feature > 0)
    ofInput = " (offset " + std::to_string(i) + " of the input is " +
              std::to_string(begin) + ", the next " + std::to_string(end) + ")";
  fail(spec.where,
       "offsets must not decrease and bags hold less than 2^31 "
       "ids: feature \"",
       spec.features[static_cast<size_t>(feature)], "\": offset ",
       i - feature * batch, " is ", begin - first, ", the next ",
       // The last may be any number, so the difference may wrap around.
       static_cast<int64_t>(static_cast<uint64_t>(end) -
                            static_cast<uint64_t>(first)),
       ofInput);
}

} // namespace

void checkOffsets(const ExchangeSpec &spec, const JaggedInput &input) {
  const int64_t *offsets = input.offsets;
  int64_t last = input.numOffsets - 1;
  if (offsets[0] != 0)
    fail(inputName(spec), "offsets must start at 0, found ", offsets[0]);
  if (bagsAreSized(offsets, last)) // the usual case, in a fast loop
    return checkLastOffset(spec, input);
  for (int64_t i = 0; i < last; ++i)
    if (offsets[i + 1] < offsets[i] ||
        offsets[i + 1] - offsets[i] > kLargestBag)
      failAtOffset(spec, input, i);
}

} // namespace neuroshard::runtime
