//===- MessageLayout.h - Rows of values in a message ------------*- C++ -*-===//
//
// Where the rows of values of one exchange lie in the message of a pair of
// devices, from the layout, the batch and the numbers of ids alone.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_MESSAGELAYOUT_H
#define NEUROSHARD_ARTIFACT_MESSAGELAYOUT_H

#include "neuroshard/Artifact/ExchangeLayout.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace neuroshard {

/// Rows of values that travel between one owner and the rank of the samples.
/// Entry e begins at begin[e]; its rows are stride[e] apart. Offsets are in
/// values. What goes by relay comes last. Entries that the rank is no reader of
/// have no rows.
struct Block {
  std::vector<int64_t> begin;
  std::vector<int64_t> stride;
  int64_t size = 0;
  int64_t directSize = 0;
};

/// The block of a rank with this batch and so many ids in each stream, as
/// kernels write and read it: rows have no scales.
Block makeBlock(const StreamSet &set, int64_t rank, int64_t batch,
                const std::function<int64_t(size_t stream)> &idsOfStream);

/// What of it travels directly, as it lies in a message: the scale of a row has
/// the room of scaleWidth(format) values in front of it. Relayed entries have
/// no rows.
Block makeDirectBlock(const StreamSet &set, int64_t rank, int64_t batch,
                      WireFormat format,
                      const std::function<int64_t(size_t stream)> &idsOfStream);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_MESSAGELAYOUT_H
