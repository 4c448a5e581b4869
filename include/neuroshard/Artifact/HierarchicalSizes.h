//===- HierarchicalSizes.h - Sizes of a hierarchical all-to-all -*- C++ -*-===//
//
// Owners send partial sums to the relay in their group that has the same index
// in the group as the rank of the sample; the relay adds them up and sends one
// row on. All sizes follow from the layout and the batches of all ranks, which
// the exchange of ids has told everyone.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_HIERARCHICALSIZES_H
#define NEUROSHARD_ARTIFACT_HIERARCHICALSIZES_H

#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Columns of rows side by side in a message, each part with the scale of its
/// rows in front.
class ScaledColumns {
public:
  /// `begins`: first columns of the parts, counted without scales.
  ScaledColumns(std::vector<int64_t> begins, int64_t width, WireFormat format);

  /// Where the part that begins at a column lies, with its scale.
  int64_t at(int64_t column) const;
  int64_t width() const { return scaledWidth; }

private:
  std::vector<int64_t> begins;
  int64_t scale; ///< values that have the room of one.
  int64_t scaledWidth;
};

/// Numbers of values in the messages of one exchange with relays, in which
/// scales of rows have the room of some. Each part of a row that a relay adds
/// up, or hands on, by itself has a scale. All arguments must outlive it, but
/// for the format.
class HierarchicalSizes {
public:
  HierarchicalSizes(const ExchangeLayout &layout, const DeviceGroups &groups,
                    const std::vector<int64_t> &batches, WireFormat format);

  /// From an owner to its relay, of one rank's samples.
  int64_t ofSamples(int64_t owner, int64_t sampleRank) const;
  /// From an owner to a relay, of the samples of all ranks that it serves; 0
  /// outside the owner's group.
  int64_t ownerToRelay(int64_t owner, int64_t relay) const;
  /// From a relay to the rank of the samples; 0 if it does not serve that.
  int64_t relayToSamples(int64_t relay, int64_t sampleRank) const;

  /// Bytes between a relay and all ranks of samples, in the mean over the
  /// relays.
  double relayBytes() const;

  /// The parts of a relayed row of an owner, and of a row that the relays of a
  /// group send.
  ScaledColumns columnsOfOwner(int64_t owner) const;
  ScaledColumns columnsOfRelays(int64_t group) const;

protected:
  const ExchangeLayout &layout;
  const DeviceGroups &groups;
  const std::vector<int64_t> &batches; ///< per rank.
  const WireFormat format;

private:
  /// Per index in a group: samples of all ranks that its relays serve.
  std::vector<int64_t> batchOfIndex;
  /// Values of a row: of each owner, and of the relays of each group.
  std::vector<int64_t> widthOfOwner;
  std::vector<int64_t> widthOfRelays;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_HIERARCHICALSIZES_H
