//===- DeferredResults.cpp - Results written for the caller ---------------===//
//
// Results that need no exchange and no sum over shards (direct results) wait
// until the caller's memory is known, and are written straight into it; or, if
// weights change before, into the layout in which results travel.
//
//===----------------------------------------------------------------------===//

#include "EntryLookups.h"
#include "Steps.h"

#include <algorithm>

namespace neuroshard::runtime {

bool isDirect(const Device &device, const Routed &routed, int32_t lookup) {
  const ExchangeLookup &spec = device.manifest()
                                   .exchanges[routed.exchange]
                                   .lookups[static_cast<size_t>(lookup)];
  const std::vector<Segment> &segments =
      device.layout(routed.exchange)
          .results[static_cast<size_t>(lookup)]
          .segments;
  return device.numDevices() == 1 && spec.pooled() &&
         spec.resultType == ElementType::F32 && !segments.empty() &&
         std::all_of(
             segments.begin(), segments.end(),
             [](const Segment &segment) { return segment.parts.size() == 1; });
}

namespace {

/// Adds the lookups of a direct result.
void addDirect(const Device &device, const Routed &routed,
               const ResultTarget &target, std::vector<LookupPart> &parts) {
  auto lookup = static_cast<size_t>(target.lookup);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  bool isMean = spec.lookups[lookup].pooling == Pooling::Mean;
  for (const PartialColumns &columns : layout.results[lookup].parts) {
    const EntryLayout &entry =
        layout.owners[0].entries[static_cast<size_t>(columns.entry)];
    LookupPart &part = parts.emplace_back();
    part.lookup = entry.kernel;
    part.ids = routed.owned.idsOf(layout.owners[0].entries,
                                  static_cast<size_t>(columns.entry), 0);
    part.out = reinterpret_cast<float *>(target.out) + columns.cols.begin;
    part.stride = target.stride;
    if (isMean)
      part.divisors = as<const float>(routed.lookups[lookup].bagCounts);
  }
}

} // namespace

std::vector<bool> writeDirectly(Device &device, const Routed &routed,
                                const Partials &partials,
                                std::span<const ResultTarget> targets) {
  std::vector<bool> written(targets.size());
  if (!partials.deferred)
    return written;
  PhaseTimer timer(device.figures, Phase::Lookup);
  std::vector<LookupPart> parts;
  for (size_t i = 0; i < targets.size(); ++i) {
    const ResultTarget &target = targets[i];
    if (target.type != ElementType::F32 ||
        !isDirect(device, routed, static_cast<int32_t>(target.lookup)))
      continue;
    if (routed.batch > 0) // else the result may be null
      addDirect(device, routed, target, parts);
    written[i] = true;
  }
  device.backend->lookUp(parts, /*isRead=*/false);
  return written;
}

void finishDeferred(Device &device) {
  std::vector<LookupPart> parts;
  for (auto [routed, partials] : device.deferred) {
    const ExchangeLayout &layout = device.layout(routed->exchange);
    addLookups(
        layout.owners[0], routed->owned, partials->sendBlocks,
        as<float>(partials->send),
        [routed = routed, &device](const EntryLayout &entry) {
          return isDirect(device, *routed, entry.lookup);
        },
        parts);
    partials->deferred = false;
  }
  device.deferred.clear();
  PhaseTimer timer(device.figures, Phase::Lookup);
  device.backend->lookUp(parts, /*isRead=*/true);
}

} // namespace neuroshard::runtime
