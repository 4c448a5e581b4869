//===- Lookup.cpp - Runs the forward kernels ------------------------------===//
//
// Kernels write into the layout in which results travel; direct results wait
// (DeferredResults.cpp).
//
//===----------------------------------------------------------------------===//

#include "EntryLookups.h"
#include "Exchange/Blocks.h"
#include "Exchange/IdExchange.h"
#include "Steps.h"

namespace neuroshard::runtime {

void addLookups(const StreamSet &set, const ReceivedSet &received,
                const std::vector<Block> &blocks, float *rows,
                const std::function<bool(const EntryLayout &)> &takes,
                std::vector<LookupPart> &parts) {
  for (size_t peer = 0; peer < blocks.size(); ++peer) {
    const Block &block = blocks[peer];
    for (size_t e = 0; e < set.entries.size(); ++e) {
      const EntryLayout &entry = set.entries[e];
      if (takes(entry) && entry.readers.contains(static_cast<int64_t>(peer)))
        parts.push_back(
            {entry.kernel,
             received.streams[static_cast<size_t>(entry.stream)][peer],
             rows + block.begin[e], block.stride[e]});
    }
    rows += block.size;
  }
}

void lookUp(Device &device, Routed &routed, Partials &partials) {
  receiveIds(device, routed);
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
    return !direct;
  };
  partials.sendBlocks = makeOwnerBlocks(device, routed);
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
