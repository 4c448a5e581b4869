//===- ReadLayout.cpp - Reads the layout of exchanges ---------------------===//
//
// Turns the member `layout` of manifest.json into ExchangeLayouts and checks
// types and ranges on the way, and that entries are where the plan binds them;
// that all parts together give right results is checked in CheckLayout.cpp.
//
//===----------------------------------------------------------------------===//

#include "ReadLayout.h"

#include "CheckLayout.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace neuroshard {
namespace {

using LayoutValue = JsonValue;

Range readBounds(const LayoutValue &value, int64_t size) {
  std::vector<int64_t> bounds = value.list(
      [&](const LayoutValue &item) { return item.integer(0, size); });
  if (bounds.size() != 2 || bounds[0] >= bounds[1])
    value.wrong("[begin, end] with begin < end");
  return {bounds[0], bounds[1]};
}

constexpr int64_t kMostColumns = int64_t{1} << 40;

class LayoutReader {
public:
  LayoutReader(const ExchangePlan &plan, const DeviceGroups &groups,
               int32_t exchange)
      : plan(plan), groups(groups),
        spec(plan.exchanges[static_cast<size_t>(exchange)]),
        exchange(exchange) {}

  ExchangeLayout read(const LayoutValue &value) {
    readBuckets(value["buckets"]);
    readDevices(value["devices"]);
    readRelays(value["relays"]);
    auto results = items(value["results"], spec.lookups.size());
    layout.results.resize(spec.lookups.size());
    for (size_t k = 0; k < results.size(); ++k)
      readResult(results[k], k);
    checkBuckets(value, plan, spec, layout);
    checkRelays(value, groups, layout);
    addReaders(plan, groups, layout);
    addGroupIds(groups, layout);
    return std::move(layout);
  }

private:
  /// The elements of a list of a known size.
  static std::vector<LayoutValue> items(const LayoutValue &value,
                                        size_t count) {
    auto all = value.list([](const LayoutValue &item) { return item; });
    if (all.size() != count)
      value.wrong(std::to_string(count) + " elements");
    return all;
  }

  int64_t dimOf(size_t lookup) const {
    return plan.tables[static_cast<size_t>(spec.lookups[lookup].table)].dim;
  }

  void readBuckets(const LayoutValue &value) {
    auto buckets = value.list([](const LayoutValue &item) { return item; });
    layout.bucketsOfLookup.resize(spec.lookups.size());
    for (const LayoutValue &item : buckets) {
      int32_t k = item["lookup"].index(spec.lookups.size());
      const ExchangeLookup &lookup = spec.lookups[static_cast<size_t>(k)];
      int64_t rows = plan.tables[static_cast<size_t>(lookup.table)].rows;
      BucketLayout bucket{k, readBounds(item["rows"], rows), false, {}};
      bucket.whole = bucket.rows.size() == rows && !lookup.dropsPadding();
      layout.bucketsOfLookup[static_cast<size_t>(k)].push_back(
          static_cast<int32_t>(layout.buckets.size()));
      layout.buckets.push_back(std::move(bucket));
    }
  }

  void readDevices(const LayoutValue &value) {
    auto devices = items(value, static_cast<size_t>(plan.numDevices));
    layout.owners.resize(devices.size());
    layout.locals.resize(devices.size());
    numbers.resize(devices.size());
    partOfEntry.resize(devices.size());
    isPart.resize(devices.size());
    entriesOfLookup.resize(spec.lookups.size());
    for (size_t device = 0; device < devices.size(); ++device) {
      readStreams(devices[device], device);
      readEntries(devices[device]["entries"], device);
      if (layout.locals[device].streams != layout.locals[0].streams)
        devices[device]["streams"].wrong(
            "the same replicated tables as on device 0");
      if (!haveEqualLookups(layout.locals[device], layout.locals[0]))
        devices[device]["entries"].wrong(
            "replicated tables in the same order as on device 0");
    }
  }

  static bool haveEqualLookups(const StreamSet &a, const StreamSet &b) {
    return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(),
                      b.entries.end(),
                      [](const EntryLayout &one, const EntryLayout &other) {
                        return one.lookup == other.lookup;
                      });
  }

  void readStreams(const LayoutValue &value, size_t device) {
    std::vector<int32_t> streams =
        value["streams"].list([&](const LayoutValue &item) {
          return item.index(layout.buckets.size());
        });
    auto own = static_cast<size_t>(
        value["own_streams"].integer(0, static_cast<int64_t>(streams.size())));
    for (size_t i = 0; i < streams.size(); ++i) {
      BucketLayout &bucket = layout.buckets[static_cast<size_t>(streams[i])];
      const ExchangeLookup &lookup =
          spec.lookups[static_cast<size_t>(bucket.lookup)];
      StreamSet &set = i < own ? layout.owners[device] : layout.locals[device];
      auto number = static_cast<int32_t>(set.streams.size());
      if (i < own)
        bucket.destinations.push_back({static_cast<int32_t>(device), number});
      else if (device == 0)
        bucket.destinations.push_back({localDestination, number});
      set.streams.push_back({bucket.lookup, streams[i], bucket.rows,
                             lookup.pooled(), lookup.weighted});
    }
  }

  void readEntries(const LayoutValue &value, size_t device) {
    const DeviceBinding &binding = plan.bindings[device];
    auto isHere = [&](const LookupBinding &bound) {
      return bound.exchange == exchange;
    };
    auto entries = items(
        value, static_cast<size_t>(std::count_if(
                   binding.lookups.begin(), binding.lookups.end(), isHere)));
    std::vector<bool> isRead(binding.lookups.size(), false);
    for (const LayoutValue &item : entries) {
      int32_t kernel = item["kernel"].index(binding.lookups.size());
      if (!isHere(binding.lookups[static_cast<size_t>(kernel)]) ||
          isRead[static_cast<size_t>(kernel)])
        item["kernel"].wrong("each lookup of the device once");
      isRead[static_cast<size_t>(kernel)] = true;
      readEntry(item, device, kernel);
    }
    partOfEntry[device].resize(layout.owners[device].entries.size(), -1);
  }

  void readEntry(const LayoutValue &value, size_t device, int32_t kernel) {
    const DeviceBinding &binding = plan.bindings[device];
    const LookupBinding &bound = binding.lookups[static_cast<size_t>(kernel)];
    const ShardSpec &shard = plan.shards[static_cast<size_t>(
        binding.slots[static_cast<size_t>(bound.slot)])];
    StreamSet &owner = layout.owners[device];
    StreamSet &local = layout.locals[device];
    bool isReplicated = plan.isReplicated(shard);
    StreamSet &set = isReplicated ? local : owner;
    auto own = static_cast<int32_t>(owner.streams.size());
    int32_t stream =
        value["stream"].index(owner.streams.size() + local.streams.size());
    bool isLocal = stream >= own;
    EntryLayout entry{kernel,
                      value["slot"].index(binding.slots.size()),
                      value["lookup"].index(spec.lookups.size()),
                      isLocal ? stream - own : stream,
                      readBounds(value["cols"], plan.tableOf(shard).dim),
                      spec.lookups[static_cast<size_t>(bound.lookup)].pooled(),
                      value["column"].integer(0, kMostColumns),
                      value["relayed"].boolean()};
    if (entry.slot != bound.slot || entry.lookup != bound.lookup ||
        entry.cols != shard.cols || isLocal != isReplicated ||
        value["replicated"].boolean() != isReplicated ||
        set.streams[static_cast<size_t>(entry.stream)].lookup != entry.lookup ||
        set.streams[static_cast<size_t>(entry.stream)].rows != shard.rows)
      value.wrong("slot, lookup, columns and stream of shard \"" + shard.name +
                  "\"");
    if (entry.relayed &&
        (!entry.pooled || shard.hasCopies() || groups.numGroups() < 2))
      value["relayed"].wrong("false");
    placeColumns(value, entry, set);
    auto number = static_cast<int32_t>(set.entries.size());
    if (isLocal) {
      layout.hasReplicated = true;
      numbers[device].push_back(-1);
    } else {
      layout.hasRemote = true;
      numbers[device].push_back(number);
      isPart[device].push_back(static_cast<int32_t>(device) ==
                               shard.devices.front());
      entriesOfLookup[static_cast<size_t>(entry.lookup)] +=
          isPart[device].back();
    }
    set.entries.push_back(entry);
  }

  /// The entries of a device lie side by side, in their order.
  static void placeColumns(const LayoutValue &value, const EntryLayout &entry,
                           StreamSet &set) {
    int64_t unpooledColumn = 0;
    int64_t &width = !entry.pooled   ? unpooledColumn
                     : entry.relayed ? set.relayedWidth
                                     : set.pooledWidth;
    if (entry.pooledColumn != width)
      value["column"].wrong(std::to_string(width) +
                            ": columns of pooled lookups side by side");
    width += entry.cols.size();
  }

  void readRelays(const LayoutValue &value) {
    auto relays = value.list([](const LayoutValue &item) { return item; });
    if (relays.empty())
      return;
    if (relays.size() != static_cast<size_t>(groups.numGroups()))
      value.wrong("a relay for each group");
    for (size_t group = 0; group < relays.size(); ++group)
      layout.relays.push_back(
          readRelay(relays[group], groups.group(static_cast<int32_t>(group))));
  }

  RelayLayout readRelay(const LayoutValue &value,
                        const std::vector<int32_t> &members) {
    RelayLayout relay;
    relay.width = value["width"].integer(0, kMostColumns);
    int64_t end = 0;
    relay.sums = value["sums"].list([&](const LayoutValue &item) {
      RelaySum sum{item["column"].integer(0, relay.width),
                   item["size"].integer(1, relay.width),
                   {}};
      if (sum.column != end)
        item["column"].wrong(std::to_string(end) + ": sums side by side");
      end += sum.size;
      sum.sources = item["sources"].list([&](const LayoutValue &source) {
        auto parts = items(source, 2);
        int32_t index = parts[0].index(members.size());
        const StreamSet &owner = layout.owners[static_cast<size_t>(
            members[static_cast<size_t>(index)])];
        int64_t last = owner.relayedWidth - sum.size;
        if (last < 0)
          source.wrong("a device with as many relayed columns");
        return RelaySource{index, parts[1].integer(0, last)};
      });
      if (sum.sources.empty())
        item["sources"].wrong("at least one source");
      return sum;
    });
    if (end != relay.width)
      value["width"].wrong(std::to_string(end) + ", the columns of the sums");
    return relay;
  }

  void readResult(const LayoutValue &value, size_t lookup) {
    ResultLayout &result = layout.results[lookup];
    result.replicated = value["replicated"].boolean();
    for (const LayoutValue &item :
         items(value["parts"], entriesOfLookup[lookup]))
      addPart(item, lookup);
    for (size_t i = 0; i < layout.locals[0].entries.size(); ++i)
      if (layout.locals[0].entries[i].lookup == static_cast<int32_t>(lookup))
        result.localEntry = static_cast<int32_t>(i);
    if (result.replicated != (result.localEntry >= 0))
      value["replicated"].wrong(result.replicated ? "false" : "true");
    if (result.replicated) {
      for (const char *field : {"segments", "relayed", "relayed_segments"})
        items(value[field], 0);
      return;
    }
    result.segments =
        readSegments(value["segments"], lookup, columnsOf(result.parts),
                     [&](const LayoutValue &part) {
                       auto [device, entry] = readPlace(part, lookup);
                       return partOfEntry[device][entry];
                     });
    readRelayed(value, lookup);
  }

  template <typename Parts>
  static std::vector<Range> columnsOf(const Parts &parts) {
    std::vector<Range> columns;
    for (const auto &part : parts)
      columns.push_back(part.cols);
    return columns;
  }

  /// Device and index of one of its own entries, which has the lookup. Written
  /// as [device, number among all entries].
  std::pair<size_t, size_t> readPlace(const LayoutValue &value,
                                      size_t lookup) const {
    auto parts = items(value, 2);
    auto device = static_cast<size_t>(parts[0].index(numbers.size()));
    int32_t entry =
        numbers[device]
               [static_cast<size_t>(parts[1].index(numbers[device].size()))];
    const StreamSet &owner = layout.owners[device];
    if (entry < 0 || owner.entries[static_cast<size_t>(entry)].lookup !=
                         static_cast<int32_t>(lookup))
      value.wrong("an entry of lookup " + std::to_string(lookup));
    return {device, static_cast<size_t>(entry)};
  }

  void addPart(const LayoutValue &value, size_t lookup) {
    auto [device, entry] = readPlace(value, lookup);
    if (!isPart[device][entry])
      value.wrong("the first copy of a shard");
    const StreamSet &owner = layout.owners[device];
    const EntryLayout &source = owner.entries[entry];
    const StreamLayout &stream =
        owner.streams[static_cast<size_t>(source.stream)];
    PartialColumns part{static_cast<int32_t>(device),
                        static_cast<int32_t>(entry), stream.bucket, stream.rows,
                        source.cols};
    std::vector<PartialColumns> &parts = layout.results[lookup].parts;
    auto key = [](const PartialColumns &one) {
      return std::tie(one.device, one.rows, one.cols);
    };
    if (!parts.empty() && key(parts.back()) >= key(part))
      value.wrong("entries by device, rows and columns, each once");
    partOfEntry[device][entry] = static_cast<int32_t>(parts.size());
    parts.push_back(part);
  }

  /// Segments of a result whose parts have these columns; `readPart` gives a
  /// part's number.
  template <typename ReadPart>
  std::vector<Segment> readSegments(const LayoutValue &value, size_t lookup,
                                    const std::vector<Range> &columns,
                                    const ReadPart &readPart) const {
    auto segments = value.list([&](const LayoutValue &item) {
      Segment segment{readBounds(item["cols"], dimOf(lookup)),
                      item["parts"].list(readPart)};
      if (segment.parts.empty())
        item["parts"].wrong("at least one part");
      return segment;
    });
    checkSegments(value, segments, columns, dimOf(lookup));
    return segments;
  }

  void readRelayed(const LayoutValue &value, size_t lookup) {
    ResultLayout &result = layout.results[lookup];
    for (const PartialColumns &part : result.parts)
      if (layout.owners[static_cast<size_t>(part.device)]
              .entries[static_cast<size_t>(part.entry)]
              .relayed != isRelayed(result))
        value["parts"].wrong("all relayed or none");
    result.relayed = value["relayed"].list([&](const LayoutValue &item) {
      RelayedColumns columns{item["group"].index(layout.relays.size()),
                             readBounds(item["cols"], dimOf(lookup)), 0};
      const RelayLayout &relay =
          layout.relays[static_cast<size_t>(columns.group)];
      if (relay.width < columns.cols.size())
        item["cols"].wrong("columns of the relay");
      columns.column =
          item["column"].integer(0, relay.width - columns.cols.size());
      return columns;
    });
    if (result.relayed.empty() == isRelayed(result))
      value["relayed"].wrong(isRelayed(result) ? "what relays send"
                                               : "nothing");
    if (!isRelayed(result)) {
      items(value["relayed_segments"], 0);
      return;
    }
    result.segments =
        readSegments(value["relayed_segments"], lookup,
                     columnsOf(result.relayed), [&](const LayoutValue &part) {
                       return part.index(result.relayed.size());
                     });
  }

  bool isRelayed(const ResultLayout &result) const {
    const PartialColumns &first = result.parts.front();
    return layout.owners[static_cast<size_t>(first.device)]
        .entries[static_cast<size_t>(first.entry)]
        .relayed;
  }

  const ExchangePlan &plan;
  const DeviceGroups &groups;
  const ExchangeSpec &spec;
  int32_t exchange;
  ExchangeLayout layout;
  /// Per device, of each entry its number in `owners`, -1 for copies.
  std::vector<std::vector<int32_t>> numbers;
  /// Per device, of each entry in `owners` its number in the result's parts.
  std::vector<std::vector<int32_t>> partOfEntry;
  /// Per device, of each entry in `owners` whether it is a part of the result:
  /// that of the first copy of its shard.
  std::vector<std::vector<bool>> isPart;
  std::vector<size_t> entriesOfLookup; ///< parts of all owners.
};

} // namespace

std::vector<ExchangeLayout> readLayouts(const JsonValue &value,
                                        const ExchangePlan &plan) {
  auto exchanges = value.list([](const LayoutValue &item) { return item; });
  if (exchanges.size() != plan.exchanges.size())
    value.wrong(std::to_string(plan.exchanges.size()) +
                " layouts, one per exchange");
  DeviceGroups groups(plan);
  std::vector<ExchangeLayout> layouts;
  for (size_t x = 0; x < exchanges.size(); ++x)
    layouts.push_back(
        LayoutReader(plan, groups, static_cast<int32_t>(x)).read(exchanges[x]));
  return layouts;
}

} // namespace neuroshard
