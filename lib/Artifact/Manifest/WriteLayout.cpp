//===- WriteLayout.cpp - Writes the layout of exchanges -------------------===//
//
// The member `layout` of manifest.json: per exchange the buckets of ids, what
// each device looks up, and which parts make up each result.
//
//===----------------------------------------------------------------------===//

#include "WriteLayout.h"

#include "CheckLayout.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

#include <algorithm>

namespace neuroshard {
namespace {

using Json = nlohmann::ordered_json;

Json boundsJson(const Range &range) {
  return Json::array({range.begin, range.end});
}

/// What one device looks up: the streams of its own shards, then those of its
/// copies of replicated tables; entries by lookup.
class DeviceWriter {
public:
  DeviceWriter(const ExchangeLayout &layout, size_t device)
      : owner(layout.owners[device]), local(layout.locals[device]) {}

  Json write() {
    Json streams = Json::array(), entries = Json::array();
    for (const StreamSet *set : {&owner, &local})
      for (const StreamLayout &stream : set->streams)
        streams.push_back(stream.bucket);
    // A lookup is of own shards or of a copy, never of both.
    auto own = owner.entries.begin();
    auto copy = local.entries.begin();
    while (own != owner.entries.end() || copy != local.entries.end()) {
      bool takesOwn =
          copy == local.entries.end() ||
          (own != owner.entries.end() && own->lookup < copy->lookup);
      if (takesOwn)
        numberOfEntry.push_back(entries.size());
      entries.push_back(takesOwn ? entry(*own++, false) : entry(*copy++, true));
    }
    return {{"streams", streams},
            {"own_streams", owner.streams.size()},
            {"entries", entries}};
  }

  /// Of each of the owner's entries, its number among all.
  std::vector<size_t> numberOfEntry;

private:
  Json entry(const EntryLayout &entry, bool copied) const {
    int64_t firstStream =
        copied ? static_cast<int64_t>(owner.streams.size()) : 0;
    return {{"kernel", entry.kernel},
            {"slot", entry.slot},
            {"lookup", entry.lookup},
            {"stream", firstStream + entry.stream},
            {"cols", boundsJson(entry.cols)},
            {"column", entry.pooledColumn},
            {"replicated", copied},
            {"relayed", entry.relayed}};
  }

  const StreamSet &owner;
  const StreamSet &local;
};

/// [device, number of its entry].
Json placeJson(const PartialColumns &part,
               const std::vector<DeviceWriter> &devices) {
  return Json::array(
      {part.device, devices[static_cast<size_t>(part.device)]
                        .numberOfEntry[static_cast<size_t>(part.entry)]});
}

Json segmentJson(const Segment &segment, const ResultLayout &result,
                 const std::vector<DeviceWriter> &devices) {
  Json parts = Json::array();
  for (int32_t index : segment.parts)
    parts.push_back(
        placeJson(result.parts[static_cast<size_t>(index)], devices));
  return {{"cols", boundsJson(segment.cols)}, {"parts", parts}};
}

Json resultJson(const ResultLayout &result,
                const std::vector<DeviceWriter> &devices) {
  std::vector<Range> cols;
  for (const PartialColumns &part : result.parts)
    cols.push_back(part.cols);
  Json parts = Json::array(), segments = Json::array();
  Json relayed = Json::array(), relayedSegments = Json::array();
  for (const PartialColumns &part : result.parts)
    parts.push_back(placeJson(part, devices));
  for (const Segment &segment : cutColumns(cols))
    segments.push_back(segmentJson(segment, result, devices));
  if (!result.relayed.empty())
    for (const Segment &segment : result.segments)
      relayedSegments.push_back(
          {{"cols", boundsJson(segment.cols)}, {"parts", segment.parts}});
  for (const RelayedColumns &columns : result.relayed)
    relayed.push_back({{"group", columns.group},
                       {"cols", boundsJson(columns.cols)},
                       {"column", columns.column}});
  return {{"replicated", result.replicated},
          {"parts", parts},
          {"segments", segments},
          {"relayed", relayed},
          {"relayed_segments", relayedSegments}};
}

Json relayJson(const RelayLayout &relay) {
  Json sums = Json::array();
  for (const RelaySum &sum : relay.sums) {
    Json sources = Json::array();
    for (const RelaySource &source : sum.sources)
      sources.push_back(Json::array({source.index, source.column}));
    sums.push_back(
        {{"column", sum.column}, {"size", sum.size}, {"sources", sources}});
  }
  return {{"width", relay.width}, {"sums", sums}};
}

Json exchangeLayoutJson(const ExchangeLayout &layout) {
  Json buckets = Json::array(), written = Json::array();
  Json results = Json::array(), relays = Json::array();
  for (const BucketLayout &bucket : layout.buckets)
    buckets.push_back(
        {{"lookup", bucket.lookup}, {"rows", boundsJson(bucket.rows)}});
  std::vector<DeviceWriter> devices;
  for (size_t device = 0; device < layout.owners.size(); ++device)
    written.push_back(devices.emplace_back(layout, device).write());
  for (const ResultLayout &result : layout.results)
    results.push_back(resultJson(result, devices));
  for (const RelayLayout &relay : layout.relays)
    relays.push_back(relayJson(relay));
  return {{"buckets", buckets},
          {"devices", written},
          {"results", results},
          {"relays", relays}};
}

} // namespace

Json layoutJson(const Manifest &manifest) {
  const std::vector<ExchangeLayout> &layouts =
      manifest.layouts.empty() ? makeLayouts(manifest) : manifest.layouts;
  Json json = Json::array();
  for (size_t i = 0; i < layouts.size(); ++i)
    json.push_back(exchangeLayoutJson(layouts[i]));
  return json;
}

} // namespace neuroshard
