//===- Lookup.cpp - Runs the forward kernels ------------------------------===//
//
// Kernels write into the layout in which results travel. Direct results wait
// (DeferredResults.cpp), and so do relayed ones, which are sent in pieces: one
// travels while the next is looked up.
//
//===----------------------------------------------------------------------===//

#include "CatchUp.h"
#include "EntryLookups.h"
#include "Exchange/Blocks.h"
#include "FetchRows.h"
#include "Steps.h"

namespace neuroshard::runtime {

namespace {

/// Calls function(entry, rank, lookup) for the entries of a set and the ranks
/// that read them.
template <typename Function>
void forEachLookup(const StreamSet &set, const ReceivedSet &received,
                   const std::vector<Block> &blocks, float *rows,
                   const Function &function) {
  for (size_t peer = 0; peer < blocks.size(); ++peer) {
    const Block &block = blocks[peer];
    for (size_t e = 0; e < set.entries.size(); ++e) {
      const EntryLayout &entry = set.entries[e];
      if (entry.readers.contains(static_cast<int64_t>(peer)))
        function(entry, peer,
                 LookupPart{entry.kernel, received.idsOf(set.entries, e, peer),
                            rows + block.begin[e], block.stride[e]});
    }
    rows += block.size;
  }
}

/// Of some bags of a pooled lookup, which have their share of the ids.
LookupPart ofBags(LookupPart part, int64_t begin, int64_t count) {
  if (count == part.ids.bags)
    return part;
  part.ids.numIds = part.ids.numIds * count / part.ids.bags;
  part.ids.offsets += begin;
  part.ids.bags = count;
  part.out += begin * part.stride;
  return part;
}

} // namespace

void addLookups(const StreamSet &set, const ReceivedSet &received,
                const std::vector<Block> &blocks, float *rows,
                const std::function<bool(const EntryLayout &)> &takes,
                std::vector<LookupPart> &parts) {
  forEachLookup(set, received, blocks, rows,
                [&](const EntryLayout &entry, size_t, const LookupPart &part) {
                  if (takes(entry))
                    parts.push_back(part);
                });
}

void lookUpRelayed(Device &device, const Routed &routed,
                   const Partials &partials, const RelayedPiece &piece) {
  PhaseTimer timer(device.figures, Phase::Lookup);
  std::vector<LookupPart> parts;
  forEachLookup(
      device.layout(routed.exchange).owners[device.rank()], routed.owned,
      partials.sendBlocks, as<float>(partials.send),
      [&](const EntryLayout &entry, size_t peer, const LookupPart &part) {
        if (entry.relayed)
          parts.push_back(
              ofBags(part, piece.begins[peer], piece.batches[peer]));
      });
  device.backend->lookUp(parts, /*isRead=*/true);
}

void lookUp(Device &device, Routed &routed, Partials &partials) {
  waitForRows(device, routed);
  catchUp(device, routed);
  PhaseTimer timer(device.figures, Phase::Lookup);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  auto acquire = [&](int64_t values) {
    return device.buffers->acquire(
        BufferKind::Partials, values * static_cast<int64_t>(sizeof(float)));
  };
  std::vector<LookupPart> parts;
  auto now = [&](const EntryLayout &entry) {
    bool direct = isDirect(device, routed, entry.lookup);
    partials.deferred |= direct;
    return !direct && !entry.relayed;
  };
  partials.sendBlocks =
      makeOwnerBlocks(device.layout(routed.exchange), device, routed);
  partials.sendBegins = beginsOf(sizesOf(partials.sendBlocks));
  partials.send = acquire(partials.sendBegins.back());
  if (layout.hasRemote)
    addLookups(layout.owners[device.rank()], routed.owned, partials.sendBlocks,
               as<float>(partials.send), now, parts);
  if (layout.hasReplicated) {
    const StreamSet &local = layout.locals[device.rank()];
    Block block = makeOwnBlock(device, local, routed, WireFormat::F32);
    partials.local = acquire(block.size);
    partials.localRows.resize(block.begin.size());
    placeLocalRows(block, partials.local.get(), WireFormat::F32,
                   partials.localRows);
    addLookups(local, routed.local, {block}, as<float>(partials.local), now,
               parts);
  }
  device.backend->lookUp(parts, /*isRead=*/true);
  if (partials.deferred)
    device.deferred.push_back({&routed, &partials});
}

} // namespace neuroshard::runtime
