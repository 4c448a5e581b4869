//===- ExchangeLayout.cpp - Layout of the exchanges of a plan -------------===//

#include "neuroshard/Artifact/ExchangeLayout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace neuroshard {
namespace {

class LayoutBuilder {
public:
  LayoutBuilder(const ExchangePlan &plan, const DeviceGroups &groups,
                const std::vector<bool> &relayed, int32_t exchange)
      : plan(plan), groups(groups), relayed(relayed),
        spec(plan.exchanges[exchange]), exchange(exchange) {}

  ExchangeLayout build() {
    layout.owners.resize(static_cast<size_t>(plan.numDevices));
    layout.locals.resize(static_cast<size_t>(plan.numDevices));
    layout.results.resize(spec.lookups.size());
    addBuckets();
    for (int32_t device = 0; device < plan.numDevices; ++device)
      addEntries(device);
    for (ResultLayout &result : layout.results)
      sortParts(result);
    markRelayed(groups, relayed, spec, layout);
    for (int32_t device = 0; device < plan.numDevices; ++device) {
      placePooledColumns(layout.locals[device]);
      placePooledColumns(layout.owners[device]);
    }
    addRelays(groups, layout);
    addReaders(plan, groups, layout);
    addGroupIds(groups, layout);
    return std::move(layout);
  }

private:
  void addBuckets() {
    layout.bucketsOfLookup.resize(spec.lookups.size());
    std::vector<std::set<Range>> rangesOfTable(plan.tables.size());
    for (const ShardSpec &shard : plan.shards)
      rangesOfTable[static_cast<size_t>(shard.table)].insert(shard.rows);
    for (size_t k = 0; k < spec.lookups.size(); ++k) {
      const ExchangeLookup &lookup = spec.lookups[k];
      Range all{0, plan.tables[lookup.table].rows};
      for (const Range &rows :
           rangesOfTable[static_cast<size_t>(lookup.table)]) {
        layout.bucketsOfLookup[k].push_back(
            static_cast<int32_t>(layout.buckets.size()));
        layout.buckets.push_back({static_cast<int32_t>(k),
                                  rows,
                                  rows == all && !lookup.dropsPadding(),
                                  {}});
      }
    }
  }

  void addEntries(int32_t device) {
    const DeviceBinding &binding = plan.bindings[device];
    // The same order of lookups on every device, so that copies have their
    // columns at the same places.
    std::vector<size_t> order(binding.lookups.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return binding.lookups[a].lookup < binding.lookups[b].lookup;
    });
    for (size_t i : order) {
      const LookupBinding &bound = binding.lookups[i];
      if (bound.exchange != exchange)
        continue;
      const ShardSpec &shard = plan.shards[binding.slots[bound.slot]];
      if (plan.isReplicated(shard))
        addLocalEntry(device, static_cast<int32_t>(i), bound);
      else
        addRemoteEntry(device, static_cast<int32_t>(i), bound, shard);
    }
    StreamSet &local = layout.locals[device];
    for (size_t i = 0; i < local.entries.size(); ++i) {
      EntryLayout &entry = local.entries[i];
      int32_t bucket = layout.bucketsOfLookup[entry.lookup][0];
      entry.stream = addStream(local, bucket);
      layout.results[entry.lookup].localEntry = static_cast<int32_t>(i);
      if (device == 0)
        layout.buckets[bucket].destinations.push_back(
            {localDestination, entry.stream});
    }
  }

  void addLocalEntry(int32_t device, int32_t kernel,
                     const LookupBinding &bound) {
    const ExchangeLookup &lookup = spec.lookups[bound.lookup];
    Range cols{0, plan.tables[lookup.table].dim};
    layout.locals[device].entries.push_back(
        {kernel, bound.slot, bound.lookup, 0, cols, lookup.pooled(), 0});
    layout.results[bound.lookup].replicated = true;
    layout.hasReplicated = true;
  }

  void addRemoteEntry(int32_t device, int32_t kernel,
                      const LookupBinding &bound, const ShardSpec &shard) {
    StreamSet &owner = layout.owners[device];
    int32_t bucket = findBucket(bound.lookup, shard.rows);
    int32_t stream = findStream(owner, bucket);
    if (stream < 0) {
      stream = addStream(owner, bucket);
      layout.buckets[bucket].destinations.push_back({device, stream});
    }
    // Devices come in ascending order, so that a part is of the first copy.
    if (device == shard.devices.front())
      layout.results[bound.lookup].parts.push_back(
          {device, static_cast<int32_t>(owner.entries.size()), bucket,
           shard.rows, shard.cols});
    owner.entries.push_back({kernel, bound.slot, bound.lookup, stream,
                             shard.cols, spec.lookups[bound.lookup].pooled(),
                             0});
    layout.hasRemote = true;
  }

  /// Every shard's range of rows has a bucket, and those of a lookup ascend.
  int32_t findBucket(int32_t lookup, const Range &rows) const {
    const std::vector<int32_t> &buckets = layout.bucketsOfLookup[lookup];
    return *std::lower_bound(buckets.begin(), buckets.end(), rows,
                             [&](int32_t bucket, const Range &wanted) {
                               return layout.buckets[bucket].rows < wanted;
                             });
  }

  static int32_t findStream(const StreamSet &set, int32_t bucket) {
    for (size_t i = 0; i < set.streams.size(); ++i)
      if (set.streams[i].bucket == bucket)
        return static_cast<int32_t>(i);
    return -1;
  }

  int32_t addStream(StreamSet &set, int32_t bucket) const {
    const BucketLayout &source = layout.buckets[bucket];
    const ExchangeLookup &lookup = spec.lookups[source.lookup];
    set.streams.push_back(
        {source.lookup, bucket, source.rows, lookup.pooled(), lookup.weighted});
    return static_cast<int32_t>(set.streams.size()) - 1;
  }

  /// Puts parts into the order of addition.
  static void sortParts(ResultLayout &result) {
    std::stable_sort(result.parts.begin(), result.parts.end(),
                     [](const PartialColumns &a, const PartialColumns &b) {
                       return std::tie(a.device, a.rows, a.cols) <
                              std::tie(b.device, b.rows, b.cols);
                     });
    std::vector<Range> cols;
    for (const PartialColumns &part : result.parts)
      cols.push_back(part.cols);
    result.segments = cutColumns(cols);
  }

  const ExchangePlan &plan;
  const DeviceGroups &groups;
  const std::vector<bool> &relayed; ///< by table.
  const ExchangeSpec &spec;
  int32_t exchange;
  ExchangeLayout layout;
};

} // namespace

void placePooledColumns(StreamSet &set) {
  set.pooledWidth = set.relayedWidth = 0;
  for (EntryLayout &entry : set.entries) {
    if (!entry.pooled || entry.readers.areNone())
      continue;
    int64_t &width = entry.relayed ? set.relayedWidth : set.pooledWidth;
    entry.pooledColumn = width;
    width += entry.cols.size();
  }
}

std::vector<Segment> cutColumns(const std::vector<Range> &ranges) {
  std::set<int64_t> cuts;
  for (const Range &range : ranges)
    cuts.insert({range.begin, range.end});
  std::vector<Segment> segments;
  for (auto it = cuts.begin(); it != cuts.end() && std::next(it) != cuts.end();
       ++it) {
    Segment segment{{*it, *std::next(it)}, {}};
    for (size_t i = 0; i < ranges.size(); ++i)
      if (ranges[i].overlaps(segment.cols))
        segment.parts.push_back(static_cast<int32_t>(i));
    if (!segment.parts.empty())
      segments.push_back(std::move(segment));
  }
  return segments;
}

std::vector<ExchangeLayout> makeLayouts(const ExchangePlan &plan) {
  std::vector<ExchangeLayout> layouts;
  DeviceGroups groups(plan);
  std::vector<bool> relayed = relayedTables(plan);
  for (size_t i = 0; i < plan.exchanges.size(); ++i)
    layouts.push_back(
        LayoutBuilder(plan, groups, relayed, static_cast<int32_t>(i)).build());
  return layouts;
}

} // namespace neuroshard
