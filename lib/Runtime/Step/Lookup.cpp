//===- Lookup.cpp - Runs the forward kernels ------------------------------===//
//
// One parallel launch over chunks of bags of all entries. Kernels write into
// the layout in which results travel; direct results wait
// (DeferredResults.cpp).
//
//===----------------------------------------------------------------------===//

#include "Exchange/Blocks.h"
#include "Exchange/IdExchange.h"
#include "LookupTasks.h"
#include "Steps.h"

namespace neuroshard::runtime {

void lookUp(Device &device, Routed &routed, Partials &partials) {
  receiveIds(device, routed);
  PhaseTimer timer(device.figures, Phase::Lookup);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const StreamSet &owned = layout.owners[device.rank()];
  const StreamSet &local = layout.locals[device.rank()];
  int32_t idBytes = device.manifest().exchanges[routed.exchange].idBytes();

  partials.sendBlocks = makeOwnerBlocks(owned, routed.owned);
  partials.send = device.buffers->acquireArray<float>(
      BufferKind::Partials, totalFloats(partials.sendBlocks));
  std::vector<LookupTask> tasks;
  auto now = [&](const EntryLayout &entry) {
    bool direct = isDirect(device, routed, entry.lookup);
    partials.deferred |= direct;
    return !direct;
  };
  addSet(device, idBytes, owned, routed.owned, partials.sendBlocks,
         as<float>(partials.send), now, tasks);
  if (layout.hasReplicated) {
    partials.localBlock = makeLocalBlock(device, routed);
    partials.local = device.buffers->acquireArray<float>(
        BufferKind::Partials, partials.localBlock.size);
    partials.localRows = as<float>(partials.local);
    addSet(device, idBytes, local, routed.local, {&partials.localBlock, 1},
           partials.localRows, now, tasks);
  }
  runAll(device, tasks);
  if (partials.deferred)
    device.deferred.push_back({&routed, &partials});
}

} // namespace neuroshard::runtime
