//===- RelayLayout.cpp - Which partial sums are added on their way --------===//
//
// A table whose row shards lie inside one group would send one partial sum per
// owner over the slow links between groups; the sum of all is as good.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/ExchangeLayout.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

/// True if two devices of one group have partial sums of the same columns.
bool addsUpInAGroup(const Manifest &manifest, const ResultLayout &result) {
  for (const Piece &a : result.pieces)
    for (const Piece &b : result.pieces)
      if (a.device < b.device && a.cols.overlaps(b.cols) &&
          manifest.places[a.device].group == manifest.places[b.device].group)
        return true;
  return false;
}

bool isRelayed(const ExchangeLayout &layout, const ResultLayout &result) {
  if (result.pieces.empty())
    return false;
  const Piece &piece = result.pieces.front();
  return layout.owners[piece.device].entries[piece.entry].relayed;
}

/// Adds what the members of a group have of one result.
void addSums(const Manifest &manifest, int32_t group, ExchangeLayout &layout,
             ResultLayout &result) {
  std::vector<const Piece *> pieces;
  std::vector<Range> cols;
  for (const Piece &piece : result.pieces)
    if (manifest.places[piece.device].group == group) {
      pieces.push_back(&piece);
      cols.push_back(piece.cols);
    }
  RelayLayout &relay = layout.relays[group];
  for (const Segment &segment : cutColumns(cols)) {
    RelaySum sum{relay.width, segment.cols.size(), {}};
    for (int32_t i : segment.pieces) {
      const Piece &piece = *pieces[i];
      const EntryLayout &entry =
          layout.owners[piece.device].entries[piece.entry];
      sum.sources.push_back(
          {manifest.places[piece.device].member,
           entry.pooledColumn + segment.cols.begin - piece.cols.begin});
    }
    result.relayed.push_back({group, segment.cols, relay.width});
    relay.width += sum.size;
    relay.sums.push_back(std::move(sum));
  }
}

} // namespace

void markRelayed(const Manifest &manifest, const ExchangeSpec &spec,
                 ExchangeLayout &layout) {
  if (manifest.groups.size() < 2)
    return;
  for (size_t k = 0; k < layout.results.size(); ++k) {
    const ResultLayout &result = layout.results[k];
    if (!spec.lookups[k].pooled() || !addsUpInAGroup(manifest, result))
      continue;
    for (const Piece &piece : result.pieces)
      layout.owners[piece.device].entries[piece.entry].relayed = true;
    layout.relays.resize(manifest.groups.size());
  }
}

void addRelays(const Manifest &manifest, ExchangeLayout &layout) {
  for (ResultLayout &result : layout.results) {
    if (!isRelayed(layout, result))
      continue;
    for (size_t group = 0; group < layout.relays.size(); ++group)
      addSums(manifest, int32_t(group), layout, result);
    std::vector<Range> cols;
    for (const RelayedPiece &piece : result.relayed)
      cols.push_back(piece.cols);
    result.segments = cutColumns(cols);
  }
}

} // namespace neuroshard::runtime
